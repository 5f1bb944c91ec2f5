// Notes about the time that a load takes.
#pragma once

#include <string>

#include "report/model/profile.h"

namespace shadowprof::report {

std::string nanoseconds_text(double nanoseconds);  // "1.7 ns", "120 ns", "4.2 us"

// How long all loads waited, estimated from the timed ones, including loads in dropped entries.
double all_waiting_ns(const LatencySection& list);

// Where the model says its data came from, the farthest first: "memory 97 %, L3 3 %".
std::string levels_text(const LatencyEntry& entry);
// "step +64", "chases list_sum:12"; empty if nothing is known.
std::string pattern_text(const Profile& profile, const LatencyEntry& entry);
// "71 % of all waiting, 120 ns each; memory 97 %"; empty if the load is not worth a line.
std::string latency_note(const Profile& profile, const LatencyEntry& entry);
std::string share_bar(double share);  // "██████··"

// How the times were measured, and which caches are modelled.
std::string scale_text(const LatencyScale& scale);

}  // namespace shadowprof::report
