// Finds opportunities to improve the program. A report begins with them.
#pragma once

#include <span>
#include <vector>

#include "report/opportunities/finding.h"
#include "report/symbols/symbols.h"

namespace shadowprof::report {

// The findings, the one that touches most first. Of two findings that rest on the same
// instruction, the one that touches more is kept.
std::vector<Finding> find_opportunities(const Profile& profile, Symbols& symbols);

// All kinds there are, found or not.
std::vector<const FindingKind*> finding_kinds();

}  // namespace shadowprof::report
