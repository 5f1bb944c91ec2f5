// What profiling cost the target.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace shadowprof::sampling {

struct Cost {
    std::uint64_t stops = 0;
    Seconds stop_time{0};
    Seconds price{0};  // the stops and what comes with them: what the budget counts (prices.h)
    std::uint64_t misses = 0;  // threads asked for code that was not translated
    std::uint64_t forks = 0;
    std::uint64_t extra_faults = 0;  // of pages that replicas shared
    Seconds extra_cpu{0};            // computed by replicas and by us

    Cost& operator+=(const Cost& other) {
        stops += other.stops;
        stop_time += other.stop_time;
        price += other.price;
        misses += other.misses;
        forks += other.forks;
        extra_faults += other.extra_faults;
        extra_cpu += other.extra_cpu;
        return *this;
    }
};

}  // namespace shadowprof::sampling
