// What divisions divide by.
//
// A division reads its divisor and does not write it. So its values are taken from the
// instructions that wrote it last, even if they are in a caller, or, if it is in memory, from the
// division itself.
#pragma once

#include <optional>

#include "report/opportunities/last_writers.h"

namespace shadowprof::report {

struct Divisor {
    RegisterFamily family{};
    Writers writers;           // of the register
    Evidence::Written loaded;  // what was read, if it is in memory

    bool is_in_memory() const { return !loaded.entries.empty(); }
};

bool is_integer_division(const InstructionText& text);
// Nothing if it is no division, or nothing is known of the divisor.
std::optional<Divisor> divisor_of(const Evidence& evidence, Point at);

std::optional<DominantValue> usual_divisor(const Evidence& evidence, const Divisor& divisor);

}  // namespace shadowprof::report
