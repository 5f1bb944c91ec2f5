#include "profile/common/instruction_text.h"

#include <algorithm>
#include <array>

namespace shadowprof::profile {

namespace {

template <std::size_t n>
bool contains(const std::array<std::string_view, n>& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

constexpr std::array<std::string_view, 9> prefixes{"lock",  "rep", "repe",    "repne",   "repz",
                                                   "repnz", "bnd", "notrack", "xacquire"};

constexpr std::array<std::array<std::string_view, 5>, 8> old_registers{{
    {"rax", "eax", "ax", "al", "ah"},
    {"rcx", "ecx", "cx", "cl", "ch"},
    {"rdx", "edx", "dx", "dl", "dh"},
    {"rbx", "ebx", "bx", "bl", "bh"},
    {"rsp", "esp", "sp", "spl", ""},
    {"rbp", "ebp", "bp", "bpl", ""},
    {"rsi", "esi", "si", "sil", ""},
    {"rdi", "edi", "di", "dil", ""},
}};

constexpr std::array<std::string_view, 22> copies{
    "mov",     "movzx",   "movsx",   "movsxd",  "movsd",  "movss",  "movq",   "movd",
    "movaps",  "movapd",  "movups",  "movupd",  "movdqa", "movdqu", "vmovsd", "vmovss",
    "vmovaps", "vmovups", "vmovdqa", "vmovdqu", "vmovq",  "vmovd"};
constexpr std::array<std::string_view, 6> other_writers{"movabs", "lea",          "pop",
                                                        "movbe",  "vpbroadcastd", "vpbroadcastq"};

std::optional<unsigned> small_number(std::string_view digits, unsigned limit) {
    if (digits.empty() || digits.size() > 2) return {};
    unsigned n = 0;
    for (const char c : digits) {
        if (c < '0' || c > '9') return {};
        n = 10 * n + static_cast<unsigned>(c - '0');
    }
    return n < limit ? std::optional(n) : std::nullopt;
}

bool is_word_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

}  // namespace

InstructionText parse_instruction(std::string_view text) {
    InstructionText parsed;
    do {
        const auto space = std::min(text.find(' '), text.size());
        parsed.mnemonic = text.substr(0, space);
        text.remove_prefix(std::min(space + 1, text.size()));
    } while (!text.empty() && contains(prefixes, parsed.mnemonic));
    while (!text.empty()) {
        const auto comma = std::min(text.find(", "), text.size());
        parsed.operands.push_back(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 2, text.size()));
    }
    return parsed;
}

bool is_number(std::string_view operand) {
    return !operand.empty() && (operand[0] == '-' || (operand[0] >= '0' && operand[0] <= '9'));
}

std::optional<RegisterFamily> register_family(std::string_view name) {
    for (unsigned i = 0; i < old_registers.size(); ++i)
        if (!name.empty() && contains(old_registers[i], name))
            return static_cast<RegisterFamily>(i);
    if (name.size() >= 4 && name.substr(1, 2) == "mm" &&
        (name[0] == 'x' || name[0] == 'y' || name[0] == 'z')) {
        const auto n = small_number(name.substr(3), 32);
        return n ? std::optional(vector_family(*n)) : std::nullopt;
    }
    if (name.size() < 2 || name[0] != 'r') return {};
    name.remove_prefix(1);
    if (name.ends_with('d') || name.ends_with('w') || name.ends_with('b')) name.remove_suffix(1);
    const auto n = small_number(name, 16);
    return n && *n >= 8 ? std::optional(static_cast<RegisterFamily>(*n)) : std::nullopt;
}

std::vector<RegisterFamily> registers_in(std::string_view operand) {
    std::vector<RegisterFamily> found;
    for (std::size_t begin = 0; begin < operand.size();) {
        if (!is_word_character(operand[begin])) {
            ++begin;
            continue;
        }
        std::size_t end = begin;
        while (end < operand.size() && is_word_character(operand[end])) ++end;
        if (const auto family = register_family(operand.substr(begin, end - begin)))
            found.push_back(*family);
        begin = end;
    }
    return found;
}

bool mentions(std::string_view operand, RegisterFamily wanted) {
    const auto registers = registers_in(operand);
    return std::find(registers.begin(), registers.end(), wanted) != registers.end();
}

bool is_call(const InstructionText& i) {
    return i.mnemonic == "call";
}

bool is_conditional_jump(const InstructionText& i) {
    return i.mnemonic.starts_with('j') && i.mnemonic != "jmp";
}

bool never_falls_through(const InstructionText& i) {
    return i.mnemonic == "jmp" || i.mnemonic == "ret" || i.mnemonic == "ud2" || i.mnemonic == "hlt";
}

bool is_computed_branch(const InstructionText& i) {
    return (is_call(i) || i.mnemonic == "jmp") && !i.operands.empty() &&
           !registers_in(i.operands[0]).empty();
}

bool is_pure_load(const InstructionText& i) {
    return i.operands.size() == 2 && !is_memory(i.operands[0]) && is_memory(i.operands[1]) &&
           contains(copies, i.mnemonic);
}

bool only_writes_destination(const InstructionText& i) {
    if (i.mnemonic == "xor" || i.mnemonic == "pxor" || i.mnemonic == "xorps")
        return i.operands.size() == 2 && i.operands[0] == i.operands[1];
    return contains(copies, i.mnemonic) || contains(other_writers, i.mnemonic) ||
           i.mnemonic.starts_with("set") || i.mnemonic.starts_with("cvt");
}

}  // namespace shadowprof::profile
