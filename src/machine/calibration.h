// What this machine's clock and memory are like, so that times of loads mean something: how finely
// the time stamp counter tells time, what timing a load costs by itself, how long a load takes from
// each level of the memory, and which caches there are.
//
// Measuring it takes a moment, so the result is kept for a while in the user's cache directory. A
// disturbed measurement would be kept as well, so each number is the best of several.
#pragma once

#include <string>

#include "machine/latency_scale.h"

namespace shadowprof::machine {

// Why the time stamp counter cannot be used; empty if it can.
std::string why_clock_is_unusable(const std::string& cpu_flags, bool may_be_read,
                                  double nanoseconds_to_read);

// As the processor describes them.
CacheGeometry caches_of_this_machine();

LatencyScale calibrate();
// The same, from the file if there is a recent one of this machine.
LatencyScale calibrate_once_in_a_while();

// The contents of the file.
std::string written(const LatencyScale& scale, const std::string& machine);
// False: the file is of another machine, or damaged.
bool read_back(const std::string& text, const std::string& machine, LatencyScale& scale);

}  // namespace shadowprof::machine
