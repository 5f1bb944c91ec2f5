// What profiling cost the target.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"

namespace shadowprof::sampling {

// What it is that costs: the account of a profile adds these up.
enum class Cause : std::uint8_t {
    stop,         // threads stand still, and begin again
    slower_code,  // in the cache, or on a processor that a replica shares
    new_code,     // waits until it is translated
    page_copies,  // and forks' memory
    computing,    // of ours, where no processor is free
    other_stops,  // signals, new threads
    set_up,       // once
    clock,        // its looks
};
inline constexpr std::array<const char*, 8> names_of_causes{
    "stops",     "slower code", "new code", "page copies",
    "computing", "other stops", "set-up",   "clock"};

struct Cost {
    std::uint64_t stops = 0;
    Seconds stop_time{0};
    Seconds price{0};                                     // all of it: what the budget counts
    std::array<Seconds, names_of_causes.size()> parts{};  // of that, by cause
    void add(Cause cause, Seconds part) {
        price += part;
        parts[static_cast<std::size_t>(cause)] += part;
    }
    std::uint64_t misses = 0;  // threads asked for code that was not translated
    std::uint64_t forks = 0;
    std::uint64_t extra_faults = 0;  // of pages that replicas shared
    Seconds extra_cpu{0};            // computed by replicas and by us

    // Of so much time.
    std::map<std::string, double> parts_by_name(Seconds time) const {
        std::map<std::string, double> named;
        for (std::size_t n = 0; n < parts.size(); ++n)
            if (parts[n] > Seconds{0}) named[names_of_causes[n]] = parts[n] / time;
        return named;
    }

    Cost& operator+=(const Cost& other) {
        stops += other.stops;
        stop_time += other.stop_time;
        price += other.price;
        for (std::size_t n = 0; n < parts.size(); ++n) parts[n] += other.parts[n];
        misses += other.misses;
        forks += other.forks;
        extra_faults += other.extra_faults;
        extra_cpu += other.extra_cpu;
        return *this;
    }
};

}  // namespace shadowprof::sampling
