// Hotlists to a Profile: keeps the strongest entries, gives every location its name, source line
// and instruction text, and puts modules and locations in an order that does not depend on the
// run (by path and offset).
#pragma once

#include "profile/common/hotlists.h"
#include "report/model/profile.h"
#include "report/symbols/symbols.h"
#include "trace/block.h"
#include "trace/location.h"

namespace shadowprof::report {

Profile assemble(RunFacts facts, const profile::Hotlists& hotlists, const trace::BlockTable& blocks,
                 const trace::ModuleTable& modules, Symbols& symbols,
                 const KeepOptions& options = {});

}  // namespace shadowprof::report
