// A part of a long session. What is known of code is kept, because the profile refers to it by
// number. A program that keeps making code in the place of other code would leave behind more and
// more that is never executed again. When there is much of it the chapter is closed: what was seen
// goes to the owner of the profile, by place, and everything is learnt anew. So it is when the
// process executes another program.
#pragma once

#include <string>

#include "sampling/tuning.h"
#include "trace/block.h"
#include "trace/segment.h"

namespace shadowprof::sampling {

struct Chapter {
    std::string program;  // path
    trace::BlockTable blocks;
    trace::SegmentTable segments;

    bool should_be_closed() const { return blocks.gone() > tuning::most_blocks_gone; }
};

}  // namespace shadowprof::sampling
