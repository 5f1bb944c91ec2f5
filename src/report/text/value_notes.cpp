#include "report/text/value_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "model/utf8.h"
#include "report/symbols/instruction_text.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

constexpr std::array<std::string_view, 3> movers{"mov", "movabs", "push"};
constexpr std::array<std::string_view, 10> zeroing{"xor",   "sub",    "pxor",   "xorps",  "xorpd",
                                                   "vpxor", "vxorps", "vxorpd", "vpxord", "vpxorq"};
constexpr double worth_a_note = 0.05;

template <std::size_t n>
bool contains(const std::array<std::string_view, n>& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

std::string step_text(std::int64_t step) {
    return fmt::format("step {:+}", step);
}

// Scalar and packed floating-point numbers: the difference of their bits is no step.
bool is_floating(const std::string_view mnemonic) {
    return mnemonic.ends_with("sd") || mnemonic.ends_with("ss") || mnemonic.ends_with("pd") ||
           mnemonic.ends_with("ps");
}

// It adds a number of the code to what is there: a counter of a loop, whose step the code says.
bool is_counting(const InstructionText& i) {
    if (i.operands.empty() || is_memory(i.operands[0])) return false;
    if (i.mnemonic == "inc" || i.mnemonic == "dec") return true;
    if (i.operands.size() != 2) return false;
    if (i.mnemonic == "add" || i.mnemonic == "sub") return is_number(i.operands[1]);
    if (i.mnemonic != "lea") return false;
    const auto registers = registers_in(i.operands[1]);
    return registers.size() == 1 && register_family(i.operands[0]) == registers.front();
}

// Where the kernel puts stacks.
bool is_stack_address(std::uint64_t value) {
    return value >= 0x7ff000000000 && value < 0x800000000000;
}

bool is_about_the_stack(const ValueEntry& e) {
    if (e.kind == ValueKind::address) {
        const auto registers = registers_in(e.operand);
        return std::ranges::find(registers, RegisterFamily::rsp) != registers.end();
    }
    if (e.kind == ValueKind::register_ && register_family(e.operand) == RegisterFamily::rsp)
        return true;
    return e.bits == 64 && !e.top.empty() && is_stack_address(e.top.front().value);
}

bool stands_out(const ValueEntry& e, std::size_t n) {
    return n < e.top.size() && share_texts(e.top[n], e).share >= worth_a_note;
}

}  // namespace

bool is_constant_by_construction(const Profile& profile, const ValueEntry& entry) {
    if (is_about_the_stack(entry)) return true;
    if (entry.kind == ValueKind::loaded) return false;
    const std::string_view text = profile.at(entry.location).text;
    if (entry.kind == ValueKind::address)
        return entry.operand.find_first_of("abcdefghijklmnopqrstuvwyz") == std::string::npos ||
               entry.operand.find("rip") != std::string::npos;
    const auto [mnemonic, operands] = parse_instruction(text);
    if (operands.size() < 2) return false;
    const auto source = operands.back();
    if (contains(movers, mnemonic)) return is_number(source);
    if (contains(zeroing, mnemonic)) return source == operands[operands.size() - 2];
    // An operand relative to rip is quoted as an absolute address, without a register.
    return mnemonic == "lea" &&
           (source.find("[0x") != source.npos || source.find("rip") != source.npos);
}

std::string operand_label(const ValueEntry& entry) {
    const auto operand = printable(entry.operand);
    return entry.kind == ValueKind::register_ ? operand
                                              : std::string(name_of(entry.kind)) + " " + operand;
}

bool tells_step(const Profile& profile, const ValueEntry& e) {
    if (!e.stride || e.stride->step == 0) return false;
    if (e.kind == ValueKind::address) return true;
    const auto i = parse_instruction(profile.at(e.location).text);
    return !is_floating(i.mnemonic) && !e.operand.starts_with("xmm") &&
           !e.operand.starts_with("ymm") && !e.operand.starts_with("zmm") && !is_counting(i);
}

Regularity regularity_of(const Profile& profile, const ValueEntry& e) {
    Regularity found;
    if (!e.top.empty()) {
        const auto share = share_texts(e.top.front(), e);
        found = {share.share, value_text(e.top.front().value, e), share.interval};
    }
    if (tells_step(profile, e) && e.stride->share > found.share)
        found = {e.stride->share, step_text(e.stride->step), {}};
    return found;
}

std::string value_note(const Profile& profile, const ValueEntry& e) {
    std::string note;
    const auto add = [&](double share, const std::string& what) {
        note += (note.empty() ? operand_label(e) + " " : ", ") + share_text(share) + " " + what;
    };
    if (tells_step(profile, e) && e.stride->share >= worth_a_note)
        add(e.stride->share, step_text(e.stride->step));
    for (std::size_t n = 0; n < 2 && stands_out(e, n); ++n)
        add(share_texts(e.top[n], e).share, value_text(e.top[n].value, e));
    return note;
}

}  // namespace shadowprof::report
