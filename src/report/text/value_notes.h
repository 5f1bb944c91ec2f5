// Notes about the values of an instruction.
#pragma once

#include <string>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

// Whether the instruction itself determines the value ("mov eax, 5", "xor eax, eax",
// "lea rax, [rip+…]"). It is not worth reporting that such a value never changes. Nor is where the
// stack is, which is so by chance.
bool is_constant_by_construction(const Profile& profile, const ValueEntry& entry);

// "eax", "address [rdi+8]", "loaded [rdi+8]".
std::string operand_label(const ValueEntry& entry);

// Whether it is worth telling by how much values differ from one to the next: not where the
// instruction itself says so (the counter of a loop), and not of floating-point numbers.
bool tells_step(const Profile& profile, const ValueEntry& entry);

// The strongest regularity: one value, or one step from each value to the next.
struct Regularity {
    double share = 0;
    std::string text;      // "0x2a (42)", "step +8"
    std::string interval;  // empty if exact or not known
};
Regularity regularity_of(const Profile& profile, const ValueEntry& entry);

// "eax 97.0 % 0x2, 2.0 % 0x3"; empty if nothing stands out.
std::string value_note(const Profile& profile, const ValueEntry& entry);

}  // namespace shadowprof::report
