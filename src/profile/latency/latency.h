// Profile type latency: which loads wait, how long, where their data come from, and what their
// addresses are like.
//
// Three things are known of a load, from three sources:
//   - how often it is executed: counted;
//   - how long it takes: executions picked at random, each with the same chance, were timed. What a
//     load's timed executions waited, of what all loads' did, estimates its part of all waiting;
//   - where its data were: a model of this machine's caches is given the addresses of whole
//     stretches of accesses. It stands beside the times and never in their place: single readings
//     of a coarse clock cannot tell the first two levels apart, and the model can.
#pragma once

#include <memory>

#include "profile/common/profile_type.h"

namespace shadowprof::profile {

std::unique_ptr<Profiler> make_latency_profiler(const trace::BlockTable& blocks,
                                                const machine::LatencyScale& scale);

extern const ProfileType latency_type;

}  // namespace shadowprof::profile
