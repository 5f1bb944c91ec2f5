// shadow: when and where to sample: it decides which thread is looked at, when, by which engine,
// what that may cost the target, and hands the engines' Traces to the profilers. It knows nothing
// of symbols or files.
//
// This file: what the user asked for.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace shadowprof::shadow {

using Seconds = std::chrono::duration<double>;

enum class Mode { step, burst, full };

struct Options {
    Mode mode = Mode::step;
    // Instructions a sample has; 0 in mode step: the whole program.
    std::uint64_t sample_size = 0;
    // Budget for the target's slowdown, as a fraction.
    double overhead = 0.01;
    std::optional<Seconds> period;    // mean time between samples; by default as the budget allows
    std::optional<Seconds> duration;  // stop profiling after this
    std::optional<std::uint64_t> most_samples;
    std::uint64_t seed = 0;
    std::set<std::string> profiles;
    bool exhaustive = false;
    bool value_context = false;
    // Mode full: the share of executions whose values are captured.
    double value_fraction = 1.0 / 32;
    // … and whether the program has the random addresses it would have.
    bool randomise_addresses = false;
};

}  // namespace shadowprof::shadow
