// Notes about the values of an instruction.
#pragma once

#include <string>
#include <vector>

#include "model/shown_chapter.h"
#include "profile/value/value_section.h"

namespace shadowprof::profile {

// What reports say of values.
model::ShownChapter value_chapter(const ValueSection& list, const model::ChapterInputs& in);

// Whether the instruction itself determines the value ("mov eax, 5", "xor eax, eax",
// "lea rax, [rip+…]"). It is not worth reporting that such a value never changes. Nor is where the
// stack is, which is so by chance.
bool is_constant_by_construction(const model::Profile& profile, const ValueSection::Entry& entry);

// "eax", "address [rdi+8]", "loaded [rdi+8]".
std::string operand_label(const ValueSection::Entry& entry);

// Whether it is worth telling by how much values differ from one to the next: not where the
// instruction itself says so (the counter of a loop), and not of floating-point numbers.
bool tells_step(const model::Profile& profile, const ValueSection::Entry& entry);

// The strongest regularity: one value, or one step from each value to the next.
struct Regularity {
    model::Estimate share;  // without an interval if it is exact or not known
    std::string text;       // "0x2a (42)", "step +8"
};
Regularity regularity_of(const model::Profile& profile, const ValueSection::Entry& entry);

// "0x2a (42)", "0xffffffff (-1)", "2.5": the bits, and what they are likely to mean: an integer of
// the operand's width, or a floating-point number if it is in a vector register.
std::string value_text(std::uint64_t value, const ValueSection::Entry& entry);

// "eax 97.0 % 0x2, 2.0 % 0x3"; empty if nothing stands out.
std::string value_note(const model::Profile& profile, const ValueSection::Entry& entry);

}  // namespace shadowprof::profile
