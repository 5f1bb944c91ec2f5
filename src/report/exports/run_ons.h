// Where code runs on from one basic block into the next with no branch between them: the next
// begins there because something jumps to it. No edge tells of that, so a tool that lays out blocks
// and knows only branches would take the second for one that is only ever jumped to.
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
