// What a profile says of the run that it was taken in.
#pragma once

#include <string>
#include <vector>

#include "cli/profiling.h"
#include "model/run_facts.h"

namespace shadowprof::cli {

std::string now_utc();

model::RunFacts facts_of(const ProfilingOptions& options, const sampling::Options& sampling,
                         const sampling::Target& target, const sampling::Result& result,
                         std::string started, std::vector<std::string> command);

}  // namespace shadowprof::cli
