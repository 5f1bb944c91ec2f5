// A part of a long session. What is known of code stays, for its numbers are in the profile: so of
// a program that goes on making code, in the place of which comes other code, more and more would
// be known that nobody comes by any more. When that has become much, the chapter is closed: what
// was seen goes to whoever keeps the profile, by place, and everything is learnt anew.
#pragma once

#include "trace/block.h"
#include "trace/segment.h"

namespace shadowprof::sampling {

struct Chapter {
    trace::BlockTable blocks;
    trace::SegmentTable segments;

    // A block, with what follows from it in the profile, takes some two kilobytes.
    static constexpr std::size_t most_gone = 1u << 14;
    bool should_be_closed() const { return blocks.gone() > most_gone; }
};

}  // namespace shadowprof::sampling
