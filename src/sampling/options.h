// shadow: when and where to sample: it decides which thread is looked at, when, by which engine,
// what that may cost the target, and hands the engines' Traces to the profilers. It knows nothing
// of symbols or files.
//
// This file: what the user asked for.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace shadowprof::sampling {

enum class Mode { step, burst, shadow, full };

struct Options {
    Mode mode = Mode::step;
    static constexpr std::uint64_t default_step = 500, default_burst = 5000,
                                   default_shadow = 10'000'000;
    // Of loads that wait there are few in a sample, and its first part, while caches are cold,
    // shows none.
    static constexpr std::uint64_t default_shadow_for_latencies = 80'000'000;
    // Instructions a sample has; 0 in mode step: the whole program.
    std::uint64_t sample_size = 0;
    // Samples may be shorter, where longer ones would not be of all of the code alike.
    bool may_be_shorter = true;
    // Budget for the target's slowdown, as a fraction.
    double overhead = 0.01;
    // Mode shadow: average number of live replicas; by default what the idle cores allow.
    std::optional<double> load;
    // Of the program, in each second of it, that were seen in longer samples before these: so many
    // the samples count for.
    std::optional<double> instructions_a_second;
    std::optional<Seconds> period;    // least mean time between samples; the budget may want more
    std::optional<Seconds> duration;  // stop profiling after this
    std::optional<std::uint64_t> most_samples;
    // Stop profiling when the share of every part of the program is known to so much.
    std::optional<double> precision;
    std::uint64_t seed = 0;
    bool exhaustive = false;
    // Modes shadow and full: the share of executions whose values are captured.
    double value_fraction = 1.0 / 32;
    // Latency: loads can be timed; and blocks that a replica executes before it times any, so that
    // the caches of its core hold what the program uses, and the pages it writes are its own. After
    // so many times are what they will be (bench/latency/warm_up.cpp); the page tables of half a
    // gigabyte, chased through, are cold for the longest.
    bool clock_is_usable = true;
    std::uint64_t warm_up = 196'608;
    std::uint64_t lines_in_last_cache = 0;
    // They are what is asked for: no bursts instead, which know none, where replicas are dear.
    bool insists_on_latencies = false;
    // Mode full: whether the program has the random addresses it would have.
    bool randomise_addresses = false;
};

}  // namespace shadowprof::sampling
