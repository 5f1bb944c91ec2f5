// Call trees for flame graphs: frames from the outermost call inwards, each with the weight of all
// that went through it.
//
// A profile yields a tree of *time*, by the stacks that the clock saw, and two of instructions.
// That of *contexts* has all callers. That of *paths* needs no contexts: it has the callers that
// are on the path itself. A path has at most 32 blocks and ends with a backward branch, so its
// outermost frame may have had callers. Where a path returns from the function it began in, the
// caller becomes known:
//
//     blocks of a path    f ret   g call   h          the frames of each:  g f   g   g h
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

struct FlameFrame {
    std::string function;
    ModuleIndex module = 0;
    auto operator<=>(const FlameFrame&) const = default;
};

// In depth-first order: each node is followed by its callees, the heaviest first.
struct FlameNode {
    std::uint32_t depth = 0;
    std::uint32_t frame = 0;  // index in `frames`
    std::uint64_t weight = 0;
};

struct FlameTree {
    std::vector<FlameFrame> frames;
    std::vector<FlameNode> nodes;
    std::uint64_t total = 0;     // of all roots
    std::uint64_t left_out = 0;  // in calls too light to be shown, or beyond the greatest depth
};

struct FlameLimits {
    double least_share = 0.0002;  // of the total; lighter calls are left out
    std::size_t greatest_depth = 200;
};

// From main on, if a stack has it: what is above that says nothing.
FlameTree flame_of_time(const Profile& profile, const FlameLimits& limits = {});
FlameTree flame_of_contexts(const Profile& profile, const FlameLimits& limits = {});
FlameTree flame_of_paths(const Profile& profile, const FlameLimits& limits = {});

}  // namespace shadowprof::report
