// What this machine's clock and memory are like, so that times of loads mean something: how finely
// the time stamp counter tells time, what timing a load costs by itself, how long a load takes from
// each level of the memory, and which caches there are.
//
// Measuring it takes a moment, so it is kept for a while in the user's cache directory. Results of
// measurements that somebody else disturbed would be kept as well, so each is the best of several.
#pragma once

#include <string>

#include "profile/hotlist.h"

namespace shadowprof::shadow {

// Why the time stamp counter cannot be used; empty if it can.
std::string why_clock_is_unusable(const std::string& cpu_flags, bool may_be_read,
                                  double nanoseconds_to_read);

// As the processor describes them.
profile::CacheGeometry caches_of_this_machine();

profile::LatencyScale calibrate();
// The same, from the file if there is a recent one of this machine.
profile::LatencyScale calibrate_once_in_a_while();

// For the file.
std::string written(const profile::LatencyScale& scale, const std::string& machine);
// False: it is of another machine, or damaged.
bool read_back(const std::string& text, const std::string& machine, profile::LatencyScale& scale);

}  // namespace shadowprof::shadow
