// Finds opportunities to improve the program. A report begins with them.
#pragma once

#include <span>
#include <vector>

#include "report/opportunities/finding.h"
#include "report/symbols/symbols.h"

namespace shadowprof::report {

// Whether findings are about code that its user can hardly change: shared libraries of the system,
// as long as there is no debug information for them.
enum class Code { of_the_user, all };

// The findings, the one that touches most first. Of two findings that rest on the same
// instruction, the one that touches more is kept. Findings of one kind in one function are one.
// There are none that might as well touch nothing, and where there are too few samples for tables
// only those that are certain.
std::vector<Finding> find_opportunities(const Profile& profile, Symbols& symbols,
                                        Code whose = Code::of_the_user);

// All kinds there are, found or not.
std::vector<const FindingKind*> finding_kinds();

}  // namespace shadowprof::report
