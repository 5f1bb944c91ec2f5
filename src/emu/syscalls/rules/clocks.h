// Time: clocks, sleeping, and the CPU time that the target has used.
#pragma once

#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

MaybeAnswer clock_now(Request&);
MaybeAnswer clock_resolution(Request&);
MaybeAnswer time_of_day(Request&);
MaybeAnswer seconds_now(Request&);
MaybeAnswer nanosleep_now(Request&);
MaybeAnswer clock_nanosleep_now(Request&);
MaybeAnswer poll_nothing(Request&);
MaybeAnswer ppoll_nothing(Request&);
MaybeAnswer select_nothing(Request&);
MaybeAnswer pselect_nothing(Request&);
ReplicaAction read_clock(Request&);
MaybeAnswer tell_usage(Request&);
MaybeAnswer tell_times(Request&);

inline constexpr BurstRule tells_clock{
    "answered from the host's clocks and the target's CPU time, if known; otherwise ends",
    clock_now};
inline constexpr BurstRule tells_clock_resolution{"answered", clock_resolution};
inline constexpr BurstRule tells_time_of_day{"answered: the host's time", time_of_day};
inline constexpr BurstRule tells_seconds{"answered: the host's time", seconds_now};

inline constexpr BurstRule sleeps_no_time{"answered: slept, without waiting", nanosleep_now};
inline constexpr BurstRule sleeps_no_time_if_relative{
    "answered: slept, without waiting, if relative; otherwise ends", clock_nanosleep_now};
// poll and select without a descriptor are ways to sleep.
inline constexpr const char* sleeps_without_descriptors =
    "answered: slept, without waiting, if no descriptor is given; otherwise ends";
inline constexpr BurstRule poll_sleeps_no_time{sleeps_without_descriptors, poll_nothing};
inline constexpr BurstRule ppoll_sleeps_no_time{sleeps_without_descriptors, ppoll_nothing};
inline constexpr BurstRule select_sleeps_no_time{sleeps_without_descriptors, select_nothing};
inline constexpr BurstRule pselect_sleeps_no_time{sleeps_without_descriptors, pselect_nothing};

inline constexpr ReplicaRule reads_clock{
    "answered from the host's clocks, or executed; CPU time: the target's, if known; of a process "
    "or thread by its number: ends",
    read_clock};
inline constexpr Proviso is_clock_for_all{
    "it is not a process's or thread's by its number",
    [](Request& request) { return request.int_argument(0) >= 0; }};
inline constexpr ReplicaRule tells_usage{
    "executed, and the target's time, faults and memory added; of children: answered, if there "
    "were none; otherwise ends",
    [](Request& request) { return or_end(tell_usage(request), request); }};
inline constexpr ReplicaRule tells_times{
    "answered: the target's time, if known; otherwise ends",
    [](Request& request) { return or_end(tell_times(request), request); }};

}  // namespace shadowprof::emu::rules
