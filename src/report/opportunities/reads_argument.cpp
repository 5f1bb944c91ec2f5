#include "report/opportunities/reads_argument.h"

#include <algorithm>
#include <optional>

#include "decoder/decoder.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t most_code = 4096;

using decoder::OperandKind;
using decoder::Register;
using decoder::RegisterKind;

bool is(const Register& r, RegisterFamily family) {
    const auto number = static_cast<unsigned>(family);
    constexpr auto first_vector = static_cast<unsigned>(RegisterFamily::xmm0);
    return number < first_vector
               ? r.kind == RegisterKind::general && r.number == number
               : r.kind == RegisterKind::vector && r.number == number - first_vector;
}

// Saving a register is not using it, nor is clearing it by "xor eax, eax".
bool only_mentions(const decoder::Instruction& i) {
    using decoder::Mnemonic;
    if (i.mnemonic == Mnemonic::push || i.mnemonic == Mnemonic::nop) return true;
    const auto text = decoder::text(i);
    const auto parsed = parse_instruction(text);
    return only_writes_destination(parsed) && parsed.operands.size() == 2 &&
           parsed.operands[0] == parsed.operands[1];
}

enum class Use { none, reads, writes };

Use use_of(const decoder::Instruction& i, RegisterFamily family) {
    auto use = Use::none;
    for (const auto& o : i.operands()) {
        const bool address = o.kind == OperandKind::memory &&
                             (is(o.memory.base, family) || is(o.memory.index, family));
        const bool itself = o.kind == OperandKind::reg && is(o.reg, family);
        if ((address || (itself && o.reads)) && !only_mentions(i)) return Use::reads;
        if (itself && o.writes) use = Use::writes;
    }
    return use;
}

// Nothing if the code is not available.
std::optional<bool> read_by_code(const Evidence& e, Symbols& symbols, Point entry,
                                 RegisterFamily family) {
    const auto& l = e.place(entry);
    const auto& m = e.profile().modules[l.module];
    const trace::Module module{m.path, m.build_id};
    const auto function = symbols.function_at(module, l.offset);
    if (!function || l.content != 0) return {};
    const auto code = symbols.code_of(module, l.offset,
                                      std::min<std::size_t>(function->end - l.offset, most_code));
    if (code.empty()) return {};
    std::span<const std::byte> rest = code;
    for (Address at{l.offset}; !rest.empty();) {
        const auto i = decoder::decode(rest, at);
        if (!i) return false;
        const auto use = use_of(*i, family);
        if (use != Use::none) return use == Use::reads;
        at = i->end();
        rest = rest.subspan(i->length);
    }
    return false;
}

bool read_by_quoted_code(const Evidence& e, Point entry, RegisterFamily family) {
    for (Point at = entry; at < e.points() && e.same_function(entry, at); ++at) {
        const auto text = e.text(at);
        for (std::size_t i = 0; i < text.operands.size(); ++i) {
            const bool is_destination = i == 0 && !is_memory(text.operands[i]) &&
                                        only_writes_destination(text) && text.operands.size() > 1;
            if (!is_destination && text.mnemonic != "push" && text.mnemonic != "nop" &&
                mentions(text.operands[i], family))
                return true;
        }
        if (e.written_at(at, family)) return false;
    }
    return false;
}

}  // namespace

bool reads_argument(const Evidence& evidence, Symbols& symbols, Point entry,
                    RegisterFamily family) {
    if (const auto read = read_by_code(evidence, symbols, entry, family)) return *read;
    return read_by_quoted_code(evidence, entry, family);
}

}  // namespace shadowprof::report
