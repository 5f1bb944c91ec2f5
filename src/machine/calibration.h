// What this machine's clock and memory are like, so that times of loads mean something: how finely
// the time stamp counter tells time, what timing a load costs by itself, how long a load takes from
// each level of the memory, and which caches there are.
//
// Measuring it takes a moment, so the result is kept for a while in the user's cache directory. A
// disturbed measurement would be kept as well, so each number is the best of several.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "machine/latency_scale.h"

namespace shadowprof::machine {

// Why the time stamp counter cannot be used; empty if it can.
std::string why_clock_is_unusable(const std::string& cpu_flags, bool may_be_read,
                                  double nanoseconds_to_read);

// As the processor describes them.
CacheGeometry caches_of_this_machine();

// How much of a cache of `said` bytes there is for one program, by how long loads take that go
// around in so many bytes: beyond `limit` they come from memory. Processors that are shared, or
// made of parts, say what all parts have together. `confirmed` bytes are known to fit.
std::uint64_t size_by_time(std::uint64_t said, std::uint64_t confirmed, double limit,
                           const std::function<double(std::uint64_t)>& nanoseconds);

LatencyScale calibrate();
// The same, from the file if there is a recent one of this machine.
LatencyScale calibrate_once_in_a_while();

// The contents of the file.
std::string written(const LatencyScale& scale, const std::string& machine);
// False: the file is of another machine, or damaged.
bool read_back(const std::string& text, const std::string& machine, LatencyScale& scale);

}  // namespace shadowprof::machine
