// A profile as stacks with weights, for viewers of such stacks.
//
// A sampled stack is where a sample began. A run that was followed as a whole has no samples. For
// such runs there are stacks of one frame each: a function, with the instructions that it executed
// itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

struct StackFrame {
    std::string function;
    std::string file;
    std::uint32_t line = 0;
    LocationIndex location = 0;  // the frame is from
    auto operator<=>(const StackFrame&) const = default;
};

struct WeightedStack {
    std::vector<StackFrame> frames;  // outermost first; functions expanded in place have their own
    std::uint64_t weight = 0;
};

std::vector<WeightedStack> sampled_stacks(const Profile& profile);         // weights: samples
std::vector<WeightedStack> executed_instructions(const Profile& profile);  // one function each

// Sampled ones if there are any, else instructions; `unit` says which.
struct Stacks {
    std::vector<WeightedStack> all;
    const char* unit = "";
    std::vector<std::string> notes;
};
Stacks stacks_to_show(const Profile& profile);

// The frames of one place, outermost first.
std::vector<StackFrame> frames_of(const Profile& profile, LocationIndex location);

}  // namespace shadowprof::report
