// The contexts of a profile as the tree that they are.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

// What stands for functions in stacks of contexts.
inline constexpr std::string_view signal_frame = "[signal]";
inline constexpr std::string_view unknown_callers_frame = "[unknown callers]";
inline constexpr std::string_view others_frame = "[other contexts]";
// The same where functions stand alone.
inline constexpr std::string_view other_functions_frame = "[other functions]";

// Instructions of one context: of its innermost function itself, or of contexts that it called
// and that the profile does not list.
struct ContextPart {
    const ContextEntry* context = nullptr;  // none: of contexts without callers
    bool is_of_others = false;
    std::uint64_t instructions = 0;
};

// Together they are all instructions. None without a section of contexts.
std::vector<ContextPart> context_parts(const Profile& profile);

// Above the outermost function, if there is something to say.
std::string_view root_frame(const ContextEntry& context);

}  // namespace shadowprof::report
