// Finds places where code runs on from one basic block into the next without a branch: the next
// block begins there because some instruction jumps to it. No edge records this. Without it, a tool
// that lays out blocks and knows only branches would believe that the second block is only ever
// reached by jumps.
#pragma once

#include <cstdint>
#include <vector>

#include "report/exports/binary_names.h"
#include "report/exports/branches.h"

namespace shadowprof::report {

struct RunOn {
    std::uint64_t last = 0;  // the last instruction of the one block
    std::uint64_t next = 0;
    std::uint64_t count = 0;
};

// By address.
std::vector<RunOn> run_ons(const ModuleBranches& branches, const BinaryNames& names);

}  // namespace shadowprof::report
