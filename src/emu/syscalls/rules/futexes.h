// Futexes. Nobody else runs in the sample, so a wake wakes nobody and a wait would never end.
#pragma once

#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

MaybeAnswer futex_now(Request&);
MaybeAnswer futex2_wait(Request&);

inline constexpr BurstRule futex_without_others{
    "WAKE, REQUEUE: answered, 0 woken; WAIT: EAGAIN if the value differs; otherwise ends",
    futex_now};
inline constexpr BurstRule waits_only_in_vain{
    "answered: EAGAIN if the value differs; otherwise ends", futex2_wait};

}  // namespace shadowprof::emu::rules
