// What could be done about the program, by what it would concern; the first thing a report says.
#pragma once

#include <span>
#include <vector>

#include "report/opportunities/finding.h"
#include "report/symbols/symbols.h"

namespace shadowprof::report {

// Most first. Of two findings that rest on the same instruction, the one that touches more.
std::vector<Finding> find_opportunities(const Profile& profile, Symbols& symbols);

// All kinds there are, found or not.
std::vector<const FindingKind*> finding_kinds();

}  // namespace shadowprof::report
