// An improvement that the user could make to the program, with the evidence for it.
//
// A finding says where it is, what was measured there, and how much of the program it touches: the
// share of all executed instructions whose work the change concerns. It does not say how much time
// the change would save, which no tool knows without trying. Findings of all kinds are ranked by
// what they touch:
//
//     kind                    touches, for each execution
//     specialise-argument     the instructions of one call of the function
//     specialise-value        the instructions of the block that uses the value
//     dominant-target         the call and its return, and the callee if it is small
//     branch-layout           the jump
//     constant-divisor        the division, which counts as 20 instructions: it takes so long
//     power-of-two-divisor    the same
//     unchanged-load          the load
//     inline-call             the call and its return, and the callee
//     prefetch-load,          the waiting, a nanosecond of which counts as 3 instructions; the
//     pointer-chase           share is of all instructions and all waiting (waiting_loads.h)
//     data-stream             its references to data
//     temporary-copy          by the clock, what is called to make the copy and to destroy it
//     ordered-lookup          by the clock, the function's part that goes down the tree, and what
//                             is called from there
//     spin-wait               by the clock, the loop's part of its function
//     small-writes            by the clock, what writes and flushes
//
// Where the clock saw enough, a finding touches no more than its functions have of the time:
// instructions may be quicker than others, and waiting may overlap with other work.
//
// A finding that depends on a share (of a value, of a target) is judged by the lower end of the
// share's interval, so too few samples are no evidence.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/profile.h"
#include "report/tuning.h"
#include "report/views/shares.h"

namespace shadowprof::report {

struct FindingKind {
    std::string_view name;                      // "constant-divisor"
    std::string_view title;                     // "Division by what is a constant in practice"
    std::string_view advice;                    // what to try
    std::string_view measure = "instructions";  // of which findings touch a share
};

struct Finding {
    const FindingKind* kind = nullptr;
    LocationIndex location = 0;
    // What is said of it, where the location's own line would be one of a library's header.
    std::string where = {};
    std::string what;                   // one line: what was seen there
    std::vector<std::string> evidence;  // more lines
    double touches = 0;                 // share of all instructions, or of the time
    std::optional<Share> bounds;        // of that, with its interval; nothing if not known
    std::string interval;               // as text; empty if exact or nearly so
    // What it touches was measured by the clock, and not in instructions of its function.
    bool is_by_clock = false;
    // It is in a library of the system, and about how the user's program uses that.
    bool concerns_user = false;
    std::size_t others = 0;  // of its kind in the same function, that were joined to it
    // Whose work it touches besides that of the function it is in.
    std::vector<LocationIndex> in_callees;
    // Locations that this finding reports, so that other findings need not.
    std::vector<LocationIndex> covers;
    // What other kinds of findings say of these locations is told by this one.
    std::vector<LocationIndex> explains;
};

}  // namespace shadowprof::report
