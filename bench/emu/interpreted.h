// Kernels by the interpreter, with this process as the guest.
#pragma once

#include <cstdint>

#include "kernels.h"
#include "trace/block.h"

namespace shadowprof::bench {

inline constexpr std::uint64_t endless = ~std::uint64_t{0} >> 1;  // rounds

// Of a whole call.
std::uint64_t count_instructions(const Kernel& kernel, std::uint64_t rounds);

struct InterpreterSpeed {
    double instructions_per_second = 0;
    double blocks_per_instruction = 0, values_per_instruction = 0;
};

// Without what compiling takes.
InterpreterSpeed measure_interpreter(const Kernel& kernel, trace::CapturePlan plan, bool recorded,
                                     std::uint64_t instructions);

}  // namespace shadowprof::bench
