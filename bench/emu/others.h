// Kernels by others than the interpreter: this program, started again as a process of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels.h"
#include "trace/block.h"

namespace shadowprof::bench {

// Instructions a second of a call of so many rounds, run by `runner` (a command that takes a
// program and its arguments; empty: the bare CPU). What the process takes for itself is measured
// with no rounds and subtracted. Nothing if there is no such runner.
std::optional<double> measure_process(const std::vector<std::string>& runner, const Kernel& kernel,
                                      std::uint64_t rounds);

double measure_stepper(const Kernel& kernel, trace::CapturePlan plan, std::uint64_t instructions);

}  // namespace shadowprof::bench
