// A profile as stacks with weights, for viewers of such stacks: as the clock saw them, with time;
// or calling contexts, each with the instructions that its innermost function executed itself. In a
// profile without either each function stands alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "report/model/profile.h"
#include "report/views/time_parts.h"
#include "report/views/weight.h"

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
    std::uint64_t weight = 0;        // nanoseconds or instructions
    // Of time; empty where they are not known.
    std::string thread, system_call;
    ProcessName process;
    const TimeSection::Entry* of = nullptr;  // the profile's, if it is one
};

// One function each. What is not known by function has a frame that stands for others.
std::vector<WeightedStack> executed_instructions(const Profile& profile);
// All time on processors.
std::vector<WeightedStack> stacks_of_time(const Profile& profile);

struct Stacks {
    Weight weight{};
    std::vector<WeightedStack> all;
    std::vector<std::string> notes;
};
// None if the profile has nothing of this weight.
Stacks stacks_of(const Profile& profile, Weight weight);
// Throws UserError if there is nothing to show.
Stacks stacks_to_show(const Profile& profile, std::optional<Weight> asked);

// Throws UserError: there is nothing of this weight.
[[noreturn]] void nothing_to_export(const Profile& profile, Weight weight);

// The same for all places of a function.
using FunctionKey = std::tuple<ModuleIndex, std::uint64_t, std::uint64_t>;
FunctionKey function_key(const Location& location);

// The frames of one place, outermost first.
std::vector<StackFrame> frames_of(const Profile& profile, LocationIndex location);

}  // namespace shadowprof::report
