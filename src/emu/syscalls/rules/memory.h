// Memory: mappings, protection, hints. A replica's memory is its own, apart from shared mappings
// and from what shadowprof itself has put there.
#pragma once

#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

MaybeAnswer take_advice(Request&);
ReplicaAction map(Request&);
ReplicaAction advise(Request&);
ReplicaAction synchronise_memory(Request&);
// Whether the memory that the first two arguments describe is shadowprof's, or shared.
bool is_ours(const Request&);
bool is_shared(const Request&);
bool changes_only_private_protection(Request&);
bool moves_only_private_memory(Request&);

inline constexpr BurstRule takes_hints{
    "hints (WILLNEED, HUGEPAGE, FREE …): answered, success; otherwise ends", take_advice};

// See end_for_want_of_room().
inline constexpr ReplicaRule executes_if_room{"executed where there is room",
                                              [](Request&) -> ReplicaAction { return Execute{}; }};
inline constexpr ReplicaRule maps{
    "anonymous memory, and files that nobody has written to since: executed where there is room, "
    "shared mappings of files as private ones; otherwise ends",
    map};
inline constexpr ReplicaRule advises{
    "hints: answered, success; DONTNEED and others that change only private memory: executed; "
    "otherwise ends",
    advise};
inline constexpr ReplicaRule synchronises_memory{"MS_ASYNC: executed; otherwise answered: success",
                                                 synchronise_memory};

inline constexpr Proviso leaves_engine_alone{"it concerns none of shadowprof's own memory",
                                             [](Request& request) { return !is_ours(request); }};
inline constexpr Proviso leaves_sharing_alone{
    "it makes no shared memory writable and concerns neither devices nor shadowprof's own memory",
    changes_only_private_protection};
inline constexpr Proviso moves_private_memory{
    "it concerns neither shared memory nor shadowprof's own", moves_only_private_memory};
inline constexpr Proviso concerns_no_shared_memory{
    "it concerns no shared memory", [](Request& request) { return !is_shared(request); }};
inline constexpr Proviso moves_no_pages{
    "it moves no pages and concerns no shared memory",
    [](Request& request) { return request.argument(5) == 0 && !is_shared(request); }};

}  // namespace shadowprof::emu::rules
