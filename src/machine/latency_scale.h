// What the measured times of loads mean on a machine.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "machine/cache_geometry.h"

namespace shadowprof::machine {

// How loads were timed, and the caches that the model has.
struct LatencyScale {
    bool clock_is_usable = false;
    std::string why_not;
    double nanoseconds_per_tick = 0;
    std::uint32_t resolution_ticks = 1;                 // the steps in which the clock advances
    double overhead_ticks = 0;                          // of timing a load that takes no time
    std::array<double, memory_levels> typical_ns{};     // of each level, as calibrated
    std::array<double, memory_levels - 1> limits_ns{};  // up to which a load is said to hit a level
    double longest_ns = 0;                              // a longer load was disturbed
    CacheGeometry caches;
    bool operator==(const LatencyScale&) const = default;
};

}  // namespace shadowprof::machine
