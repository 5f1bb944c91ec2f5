// Hotlists to a Profile: keeps the strongest entries, gives every location its name, source line
// and instruction text, and puts modules and locations in an order that does not depend on the
// run (by path and offset).
#pragma once

#include <cstddef>

#include "profile/common/hotlist.h"
#include "report/model/profile.h"
#include "report/symbols/symbols.h"
#include "trace/block.h"
#include "trace/location.h"

namespace shadowprof::report {

struct AssembleOptions {
    std::size_t limit = 1000;  // entries kept in each hotlist, 0 = all
    // Kept of each instruction; what is dropped counts as unknown. All if `limit` is 0.
    std::size_t values_per_location = 16;
};

Profile assemble(RunFacts facts, const profile::Hotlists& hotlists, const trace::BlockTable& blocks,
                 const trace::ModuleTable& modules, Symbols& symbols,
                 const AssembleOptions& options = {});

}  // namespace shadowprof::report
