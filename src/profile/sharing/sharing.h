// Profile type sharing: cache lines that one thread writes and others use, by pairs of
// instructions: false sharing (of a line, not of any byte in it), true sharing, and lock words that
// several threads lock.
//
// Traces come thread by thread. What is known of their order: accesses of one thread are in the
// order of the program. Of two threads it is known that both accessed the line within one window,
// which ends when every thread that runs has handed over a chunk, after a millisecond or more; or,
// in mode instant, with the sample. What came first within the window is not known, so how often
// the line went from one to the other is not either: see line_window.h for what is counted.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "profile/common/profile_type.h"

namespace shadowprof::profile {

using SharingClock = std::chrono::steady_clock;

// By default what threads share is read from the windows of addresses that the latency profile
// has, of the samples that several threads take part in: each such sample is a window.
enum class SharingFrom : std::uint8_t { all_accesses, samples_in_company };

std::unique_ptr<Profiler> make_sharing_profiler(
    const trace::BlockTable& blocks, FunctionMap& variables,
    SharingClock::time_point (*now)() = [] { return SharingClock::now(); },
    SharingFrom from = SharingFrom::all_accesses);

extern const ProfileType sharing_type;

}  // namespace shadowprof::profile
