// Shares: what part of a whole something is, with its 95 % interval. Every share that is shown is
// computed here or in profile/common/statistics.h, so that it is the same number in the report, on
// the page and in a comparison.
//
// The counts of hotlists are weighted: those of each sample are multiplied by its weight, which
// says how often what the sample has goes into the time that it stands for: so they are estimates
// of the run's. They may only be divided by what is weighted in
// the same way: the total of their hotlist, or weighted_instructions(). Coverage::instructions is
// what was seen, without weights; no count is a share of it.
#pragma once

#include <cstdint>
#include <optional>

#include "report/model/profile.h"

namespace shadowprof::report {

using Share = model::Estimate;

Share share_of(const Statistics& entry, const Totals& totals);
Share share_of(const ValueShare& value, const ValueEntry& entry);

// The whole program was followed from its start or from when it was attached to: no share of
// executions is an estimate.
bool saw_everything(const Profile& profile);

// How many instructions all samples stand for; nothing if the profile does not say. Profiles
// written before the file had this number say it where functions were profiled or where everything
// was seen.
std::optional<std::uint64_t> weighted_instructions(const Profile& profile);

// Of all instructions, what part all executions of the path are.
std::optional<double> work_of(const PathEntry& path, const Profile& profile);

}  // namespace shadowprof::report
