// What a run's options come to: how the session samples, and which profiles are taken.
#pragma once

#include <string>
#include <vector>

#include "cli/profiling.h"
#include "sampling/modes/modes.h"

namespace shadowprof::cli {

sampling::Options sampling_options(const ProfilingOptions& options);
// Throws UserError if options contradict each other.
void check(const ProfilingOptions& options, const sampling::Options& sampling, bool attaches);
// Rules and modules that were given are asked for.
std::vector<std::string> profiles_asked_for(const ProfilingOptions& options,
                                            const sampling::Options& sampling);
bool has(const std::vector<std::string>& names, const std::string& name);
bool reads_clock(const std::string& name);

// Which modes these are, for sampling::names_of_modes().
bool has_no_samples(const sampling::ModeRow& row);
bool may_follow_everything(const sampling::ModeRow& row);

}  // namespace shadowprof::cli
