// How often each instruction of a function ran, as far as a profile tells.
//
// Nobody counted instructions: paths, edges and values each imply counts, and each may miss some
// (hotlists are cut, a sample begins and ends in the middle). All of them err on the low side, so
// the greatest is nearest. Instructions that control cannot enter or leave in between share
// their count:
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
    bool ends_block = false;        // a branch, call or return: what comes next is another's count
    bool follows_previous = false;  // in memory, with nothing in between
};

// One count for each instruction, in order of offsets; nothing if the profile has no hotlist that
// could tell.
std::optional<std::vector<std::uint64_t>> execution_counts(
    const Profile& profile, ModuleIndex module, const std::vector<ListedInstruction>& instructions);

}  // namespace shadowprof::report
