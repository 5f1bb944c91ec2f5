// Divisors in memory. No instruction yields them, so slots_of (capture.h) captures them where the
// values of destinations are asked for, as loaded values.
#pragma once

#include "decoder/instruction.h"

namespace shadowprof::trace {

bool is_divisor_in_memory(const decoder::Instruction& instruction, const decoder::Operand& operand);

}  // namespace shadowprof::trace
