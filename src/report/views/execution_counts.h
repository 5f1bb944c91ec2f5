// Estimates how often each instruction of a function ran.
//
// A profile does not count instructions. Paths, edges and values each imply counts, and each may
// miss some: hotlists are cut, and samples begin and end in the middle. All of them err on the low
// side, so the greatest is nearest to the truth. Instructions that control can neither enter nor
// leave in between share their count:
//
//     cmp            <- entered here: edges to it, and what fell in from above
//     jle +0x20      <- left here: the edges from it
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

struct ListedInstruction {
    std::uint64_t offset = 0;
    bool ends_block = false;        // a branch, call or return: the next has a count of its own
    bool follows_previous = false;  // directly, in memory
};

// One count for each instruction, in order of offsets; nothing if the profile has no hotlist that
// implies counts.
std::optional<std::vector<std::uint64_t>> execution_counts(
    const Profile& profile, ModuleIndex module, const std::vector<ListedInstruction>& instructions);

}  // namespace shadowprof::report
