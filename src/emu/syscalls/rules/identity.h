// Who the program is: its numbers and its credentials. A replica is another process, in a process
// group of its own, so it is given the target's.
#pragma once

#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

using Credentials = GuestFacts::Credentials;

// Whether the argument stands for the sampled process or thread.
bool is_sampled(const Request&, std::size_t argument);

MaybeAnswer tell_id(const std::optional<pid_t>& id);
MaybeAnswer tell_own_id(const Request&, const std::optional<pid_t>& id);
MaybeAnswer tell_credential(const Request&, uid_t Credentials::*which);
MaybeAnswer tell_three(Request&, uid_t Credentials::*real, uid_t Credentials::*effective,
                       uid_t Credentials::*saved);
ReplicaAction ask_for_id(const Request&, const std::optional<pid_t>& own);

inline constexpr BurstRule tells_pid{"answered: the target's process id",
                                     [](Request& r) { return MaybeAnswer{Answer{r.facts.pid}}; }};
inline constexpr BurstRule tells_tid{"answered: the target's thread id",
                                     [](Request& r) { return MaybeAnswer{Answer{r.facts.tid}}; }};
inline constexpr BurstRule tells_parent{"answered: the target's parent, if known; otherwise ends",
                                        [](Request& r) { return tell_id(r.facts.parent); }};
inline constexpr BurstRule tells_group{"answered, if known; otherwise ends",
                                       [](Request& r) { return tell_id(r.facts.group); }};
inline constexpr BurstRule tells_group_of{"answered of itself, if known; otherwise ends",
                                          [](Request& r) { return tell_own_id(r, r.facts.group); }};
inline constexpr BurstRule tells_session_of{
    "answered of itself, if known; otherwise ends",
    [](Request& r) { return tell_own_id(r, r.facts.session); }};

template <auto which>
inline constexpr BurstRule tells_credential{"answered, if known; otherwise ends",
                                            [](Request& r) { return tell_credential(r, which); }};
inline constexpr BurstRule tells_uid = tells_credential<&Credentials::uid>;
inline constexpr BurstRule tells_effective_uid = tells_credential<&Credentials::effective_uid>;
inline constexpr BurstRule tells_gid = tells_credential<&Credentials::gid>;
inline constexpr BurstRule tells_effective_gid = tells_credential<&Credentials::effective_gid>;
inline constexpr BurstRule tells_three_uids{"answered, if known; otherwise ends", [](Request& r) {
                                                return tell_three(r, &Credentials::uid,
                                                                  &Credentials::effective_uid,
                                                                  &Credentials::saved_uid);
                                            }};
inline constexpr BurstRule tells_three_gids{"answered, if known; otherwise ends", [](Request& r) {
                                                return tell_three(r, &Credentials::gid,
                                                                  &Credentials::effective_gid,
                                                                  &Credentials::saved_gid);
                                            }};

inline constexpr ReplicaRule asks_for_group{
    "answered of itself, if known, otherwise ends; executed of others",
    [](Request& r) { return ask_for_id(r, r.facts.group); }};
inline constexpr ReplicaRule asks_for_session{
    "answered of itself, if known, otherwise ends; executed of others",
    [](Request& r) { return ask_for_id(r, r.facts.session); }};

}  // namespace shadowprof::emu::rules
