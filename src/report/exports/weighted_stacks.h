// A profile as stacks with weights, for viewers of such stacks: calling contexts, each with the
// instructions that its innermost function executed itself. In a profile without contexts each
// function stands alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

struct StackFrame {
    std::string function;
    std::string file;
    std::uint32_t line = 0;
    std::optional<LocationIndex> location = 0;  // the frame is from; none: it stands for others
    auto operator<=>(const StackFrame&) const = default;
};

struct WeightedStack {
    std::vector<StackFrame> frames;  // outermost first; functions expanded in place have their own
    std::uint64_t weight = 0;        // instructions
};

std::vector<WeightedStack> executed_instructions(const Profile& profile);  // one function each

struct Stacks {
    std::vector<WeightedStack> all;
    std::vector<std::string> notes;
};
// Throws UserError if there is nothing to show.
Stacks stacks_to_show(const Profile& profile);

// The frames of one place, outermost first.
std::vector<StackFrame> frames_of(const Profile& profile, LocationIndex location);

}  // namespace shadowprof::report
