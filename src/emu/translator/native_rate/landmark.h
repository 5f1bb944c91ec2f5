// An instruction that a program passes regularly: how often it does so tells how much it executes
// while nothing else is recorded.
#pragma once

#include <optional>
#include <span>

#include "emu/common/guest_code.h"
#include "trace/segment.h"

namespace shadowprof::emu::translator {

struct Landmark {
    // A jump may take its place, and it may be executed elsewhere.
    decoder::Instruction instruction;
    // From one visit to the next, on average.
    double instructions = 0, nanoseconds = 0;
};

// The best landmark in what was executed lately, for a stretch of about the same length: passed
// neither so often that counting would take time, nor so seldom or irregularly that it tells
// little. `took` is about how long the original took for it, in nanoseconds.
std::optional<Landmark> choose_landmark(std::span<const trace::SegmentId> executed, double took,
                                        const trace::SegmentTable& segments, GuestCode& code);

}  // namespace shadowprof::emu::translator
