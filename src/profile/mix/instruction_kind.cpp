#include "profile/mix/instruction_kind.h"

#include <algorithm>
#include <array>
#include <utility>

#include "decoder/by_mnemonic.h"
#include "decoder/decoder.h"

namespace shadowprof::profile {

namespace {

using decoder::ElementType;
using decoder::Flow;
using decoder::Instruction;
using decoder::Mnemonic;
using decoder::Operand;
using decoder::OperandKind;
using decoder::RegisterKind;

// The decoder's name of an extension, and ours where it is another.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> extensions{{
    {"BASE", "base"},
    {"LONGMODE", "base"},
    {"PAUSE", "base"},
    {"X87", "x87"},
    {"AVX2GATHER", "AVX2"},
    {"AVX512EVEX", "AVX-512"},
    {"AVX512VEX", "AVX-512"},
    {"AVXAES", "AES"},
    {"VAES", "AES"},
    {"VPCLMULQDQ", "PCLMULQDQ"},
    {"AVX_VNNI", "AVX-VNNI"},
    {"ADOX_ADCX", "ADX"},
}};

std::string_view extension_of(const Instruction& i) {
    const auto name = decoder::isa_extension_name(i);
    for (const auto& [theirs, ours] : extensions)
        if (theirs == name) return ours;
    return name;
}

bool is_vector(const Operand& o) {
    return o.kind == OperandKind::reg &&
           (o.reg.kind == RegisterKind::vector || o.reg.kind == RegisterKind::mmx ||
            o.reg.kind == RegisterKind::mask);
}

bool accesses_memory(const Operand& o) {
    return o.kind == OperandKind::memory && o.memory.use != decoder::MemoryUse::address_only;
}

template <class Has>
bool any_explicit(const Instruction& i, Has has) {
    const auto operands = i.explicit_operands();
    return std::any_of(operands.begin(), operands.end(), has);
}

std::string_view move_of(const Instruction& i) {
    if (any_explicit(i, [](const Operand& o) { return accesses_memory(o) && o.writes; }))
        return "store";
    return any_explicit(i, accesses_memory) ? "load" : "move";
}

bool begins_with(std::string_view name, std::string_view prefix) {
    if (name.starts_with('v')) name.remove_prefix(1);
    return name.starts_with(prefix);
}

// Of instructions on vector, MMX and mask registers, and of the x87.
std::string_view vector_category(const Instruction& i, std::string_view name) {
    if (begins_with(name, "mov") || begins_with(name, "lddqu") || begins_with(name, "kmov"))
        return move_of(i);
    if (name.find("cvt") != name.npos) return "conversion";
    const bool is_floating =
        any_explicit(i, [](const Operand& o) { return o.element_type == ElementType::floating; });
    if (!is_floating) return "vector integer";
    return i.scalar_bits != 0 ? "scalar floating point" : "vector floating point";
}

std::string_view x87_category(std::string_view name) {
    if (name.starts_with("fld") || name.starts_with("fild")) return "load";
    if (name.starts_with("fst") || name.starts_with("fist")) return "store";
    return "scalar floating point";
}

constexpr std::string_view moves = "moves";  // which way depends on their operands

constexpr auto categories = [] {
    using enum Mnemonic;
    return decoder::ByMnemonic<std::string_view>{
        {},
        {{moves, {mov, movsx, movsxd, movzx, movbe, movnti, xchg}},
         {"stack", {push, pop, pushfq, popfq, enter, leave}},
         {"integer arithmetic",
          {add,  adc,  sub,     sbb,  cmp,  neg, inc, dec,  mul,  imul, mulx, div,
           idiv, xadd, cmpxchg, adcx, adox, lea, cbw, cwde, cdqe, cwd,  cdq,  cqo}},
         {"nop or hint", {pause}}}};
}();

std::string_view general_category(const Instruction& i, std::string_view name) {
    if (name.starts_with("cmov") || name.starts_with("set")) return "conditional move";
    if (name.starts_with("nop") || name.starts_with("endbr") || name.starts_with("prefetch"))
        return "nop or hint";
    const auto known = categories[i.mnemonic];
    if (known == moves) return move_of(i);
    if (!known.empty()) return known;
    constexpr std::string_view bits[] = {"and", "or",   "xor",   "not",   "test",   "shl",  "shr",
                                         "sal", "sar",  "ro",    "rc",    "bt",     "bs",   "bext",
                                         "bls", "bzhi", "tzcnt", "lzcnt", "popcnt", "pdep", "pext"};
    for (const auto prefix : bits)
        if (name.starts_with(prefix)) return "logic and bits";
    return "other";
}

}  // namespace

InstructionKind kind_of(const Instruction& i) {
    const auto extension = extension_of(i);
    const auto name = decoder::mnemonic_name(i);
    const auto category = [&]() -> std::string_view {
        switch (i.flow) {
            case Flow::conditional:
                return "conditional branch";
            case Flow::jump:
            case Flow::indirect_jump:
                return "jump";
            case Flow::call:
            case Flow::indirect_call:
                return "call";
            case Flow::return_:
                return "return";
            case Flow::system_call:
            case Flow::trap:
                return "system";
            case Flow::next:
                break;
        }
        if (decoder::is_string(i.mnemonic)) return "string";
        if (extension == "x87") return x87_category(name);
        if (any_explicit(i, is_vector)) return vector_category(i, name);
        return general_category(i, name);
    };
    return {extension, category()};
}

}  // namespace shadowprof::profile
