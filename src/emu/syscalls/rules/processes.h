// The process and its processor: scheduling, limits, options, barriers, random bytes.
#pragma once

#include <sys/resource.h>

#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

MaybeAnswer processor(Request&);
MaybeAnswer memory_barrier(Request&);
MaybeAnswer random_bytes(Request&);
MaybeAnswer name_thread(Request&);
ReplicaAction pass_barrier(Request&);
// `who` is the argument that names the thread, and `process` the value of the first argument that
// says that the second one names a process. Groups are the next value.
ReplicaAction ask_about_target(Request&, std::size_t who);
ReplicaAction ask_about_target_process(Request&, int process);
ReplicaAction pretend_scheduling(Request&, std::size_t who);
ReplicaAction pretend_process_priority(Request&, int process);
ReplicaAction limit_resources(Request&);
bool names_harmless_option(Request&);
bool leaves_gs(Request&);

inline constexpr BurstRule tells_processor{"answered: the profiler's processor", processor};
inline constexpr BurstRule barrier_succeeds{"answered: success, unless it is a query, which ends",
                                            memory_barrier};
inline constexpr ReplicaRule passes_barrier{"queries: executed; otherwise answered: success",
                                            pass_barrier};
inline constexpr BurstRule gives_random_bytes{"answered: random bytes of the host", random_bytes};
inline constexpr BurstRule names_thread{"PR_SET_NAME: answered, success; otherwise ends",
                                        name_thread};

template <std::size_t who>
inline constexpr ReplicaRule asks_about_target{"executed, for the target's thread",
                                               [](Request& r) { return ask_about_target(r, who); }};
template <std::size_t who>
inline constexpr ReplicaRule schedules{"answered: success, if for itself; otherwise ends",
                                       [](Request& r) { return pretend_scheduling(r, who); }};
template <int process>
inline constexpr ReplicaRule asks_about_target_process{
    "executed, for the target's thread or group",
    [](Request& r) { return ask_about_target_process(r, process); }};
template <int process>
inline constexpr ReplicaRule sets_process_priority{
    "answered: success, if for itself; otherwise ends",
    [](Request& r) { return pretend_process_priority(r, process); }};
inline constexpr ReplicaRule limits_resources{
    "executed for itself, or if it only asks; otherwise ends", limit_resources};

inline constexpr Proviso is_query{"it only asks", [](Request& request) {
                                      return static_cast<std::uint32_t>(request.argument(0)) ==
                                             0xffffffffu;
                                  }};
inline constexpr Proviso is_harmless_option{
    "it names the thread or memory, sets timer slack, or asks", names_harmless_option};
inline constexpr Proviso leaves_gs_alone{"it sets or asks for fs, or asks for processor features",
                                         leaves_gs};

}  // namespace shadowprof::emu::rules
