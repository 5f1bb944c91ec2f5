// The profile types there are, by name.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "profile/common/profiler.h"
#include "profile/value/value.h"

namespace shadowprof::profile {

struct ProfileOptions {
    std::set<std::string> names;
    bool value_context = false;
    std::uint64_t seed = 0;
    ValueEstimator value_estimator = ValueEstimator::counting_sample;
    std::size_t value_slots = 0;  // a location; 0: as many as suit the estimator
    trace::CapturePlan value_captures = trace::Capture::destination_values;
    machine::LatencyScale latency_scale;
    std::atomic<double>* precision = nullptr;  // where to tell it (convergence.h)
};

// In the order in which they are told.
const std::vector<std::string>& profile_names();

// The profile types asked for, and stacks, which are always collected. Throws UserError for a name
// that is none. Blocks and functions must outlive them. One thread at a time uses a profiler and
// its readers.
std::vector<std::unique_ptr<Profiler>> make_profilers(const ProfileOptions& options,
                                                      const trace::BlockTable& blocks,
                                                      FunctionMap& functions);

// What engines have to capture for them.
trace::CapturePlan captures_of(const std::vector<std::unique_ptr<Profiler>>& profilers);

}  // namespace shadowprof::profile
