// Parses instructions as the profile quotes them. Their text is all that is left when the file is
// gone.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace shadowprof::profile {

struct InstructionText {
    std::string_view mnemonic;               // without prefixes such as lock
    std::vector<std::string_view> operands;  // the destination first
};

// The result refers to `text`.
InstructionText parse_instruction(std::string_view text);

inline bool is_memory(std::string_view operand) {
    return operand.find('[') != operand.npos;
}
bool is_number(std::string_view operand);

// Names of one register, whatever their width: "rax", "eax", "ax", "al" and "ah".
enum class RegisterFamily : std::uint8_t {
    // clang-format off
    rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15, xmm0
    // clang-format on
};
constexpr RegisterFamily vector_family(unsigned number) {
    return static_cast<RegisterFamily>(static_cast<unsigned>(RegisterFamily::xmm0) + number);
}
std::optional<RegisterFamily> register_family(std::string_view name);

// The registers that an operand names: the operand itself, or those of its address.
std::vector<RegisterFamily> registers_in(std::string_view operand);
bool mentions(std::string_view operand, RegisterFamily wanted);

bool is_call(const InstructionText& i);
bool is_conditional_jump(const InstructionText& i);
// Control never continues after it.
bool never_falls_through(const InstructionText& i);
// Its target is computed: it is neither in the instruction nor at a fixed place (as in PLT stubs).
bool is_computed_branch(const InstructionText& i);
// Copies memory to a register and does nothing else: mov, movzx, movsd, vmovups, …
bool is_pure_load(const InstructionText& i);
// All registers of the destination operand are written without being read.
bool only_writes_destination(const InstructionText& i);

}  // namespace shadowprof::profile
