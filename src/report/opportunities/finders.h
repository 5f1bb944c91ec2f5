// One function for each kind of finding; opportunities.cpp has the table of kinds. A finder applies
// the thresholds on shares and executions. Findings that touch too little are removed later, for
// all kinds alike.
#pragma once

#include <vector>

#include "report/opportunities/evidence.h"
#include "report/opportunities/finding.h"
#include "report/symbols/symbols.h"

namespace shadowprof::report {

using Finder = std::vector<Finding> (*)(const Evidence& evidence, Symbols& symbols);

std::vector<Finding> find_steady_arguments(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_steady_values(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_dominant_targets(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_wrong_layouts(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_constant_divisors(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_unchanged_loads(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_prefetchable_loads(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_pointer_chases(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_data_streams(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_failed_forwarding(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_false_sharing(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_split_accesses(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_temporary_copies(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_ordered_lookups(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_spin_waits(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_small_writes(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_power_divisors(const Evidence& evidence, Symbols& symbols);
std::vector<Finding> find_calls_to_inline(const Evidence& evidence, Symbols& symbols);

}  // namespace shadowprof::report
