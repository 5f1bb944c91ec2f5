// Profile type value: the most frequent values of each instruction's operands, their share, and
// strides.
//
// Of a location's values those are told that its estimator resolves, most frequent first. Estimates
// of single values are unbiased; together they may come out above the number of executions by
// chance, so the least frequent are left out from where the sum would exceed it. What is not told
// counts as unknown.
//
// Where a run has counts-Traces, all executions of an operand are known exactly, and values of
// those that value-Traces hold: shares come from these, and say what part of all executions saw a
// value. A hotlist is exhaustive only if the values of all executions were read.
#pragma once

#include <cstdint>
#include <memory>

#include "profile/common/profile_type.h"
#include "profile/common/state.h"
#include "profile/value/value_section.h"
#include "trace/block.h"

namespace shadowprof::profile {

struct ValueOptions {
    trace::CapturePlan captures = trace::Capture::destination_values;
    StateKeys by;                                  // what values are told apart by
    PlaceNames* names = nullptr;                   // if locks are
    const trace::CaptureChoice* chosen = nullptr;  // what that needs
    StateTable::NameOfCall name_of_call = nullptr;
    ValueEstimator estimator = ValueEstimator::counting_sample;
    std::size_t slots = 0;  // a location; 0: as many as suit the estimator
    // Of all locations together, 70 bytes each. A program that makes new code all the time has ever
    // more: then those that were executed least list fewer.
    std::size_t most_listed = 500'000;
    std::uint64_t seed = 0;
};

std::unique_ptr<Profiler> make_value_profiler(const trace::BlockTable& blocks,
                                              const ValueOptions& options,
                                              FunctionMap* functions = nullptr);

extern const ProfileType value_type;

// The most memory a location's operand can take, in bytes, with the default estimator.
std::size_t most_memory_per_value_location();

}  // namespace shadowprof::profile
