// Signals: the mask, what is pending, probes with signal 0, actions and stacks.
#pragma once

#include <signal.h>

#include "base/signal_bit.h"
#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

MaybeAnswer change_signal_mask(Request&);
MaybeAnswer pending_signals(Request&);
MaybeAnswer probe_self(Request&);
MaybeAnswer probe_own_thread(Request&);

inline constexpr BurstRule keeps_signal_mask{
    "answered; the sample keeps its own mask (ends if a pending signal is unblocked)",
    change_signal_mask};
inline constexpr BurstRule tells_pending_signals{"answered", pending_signals};
inline constexpr BurstRule probe_succeeds{"answered if signal 0 to itself; otherwise ends",
                                          probe_self};
inline constexpr BurstRule thread_probe_succeeds{"answered if signal 0 to itself; otherwise ends",
                                                 probe_own_thread};

template <std::size_t signal>
inline constexpr Proviso is_probe{
    "it is signal 0", [](Request& request) { return request.int_argument(signal) == 0; }};
// The kernel resets the signal stack of a process that is cloned with its parent's memory, and a
// replica is a child of such a process.
inline constexpr Proviso asks_for_no_lost_stack{
    "the replica has set one itself, or the old one is not asked for",
    [](Request& request) { return request.is_null(1) || request.facts.has_set_signal_stack; }};
// A new replica blocks every signal. When an instruction raises a blocked signal, the kernel resets
// its action. So the program, by no doing of its own, loses the actions of the signals that writes
// to shared memory and breakpoints raise.
inline constexpr Proviso asks_for_no_lost_action{
    "the old one of SIGSEGV or SIGTRAP is not asked for", [](Request& request) {
        const auto signal = request.int_argument(0);
        return request.is_null(2) || (signal != SIGSEGV && signal != SIGTRAP);
    }};

}  // namespace shadowprof::emu::rules
