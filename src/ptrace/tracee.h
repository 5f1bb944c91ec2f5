// The state of a stopped tracee of the calling thread: a thread of the target, or a replica. The
// functions return nothing, or false, if the tracee has died.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/address.h"
#include "ptrace/registers.h"

namespace shadowprof::ptrace {

std::optional<Registers> registers_of(pid_t tid);
bool set_registers_of(pid_t tid, const Registers&);
std::optional<ExtendedState> extended_state_of(pid_t tid);
bool set_extended_state_of(pid_t tid, const ExtendedState&);
std::optional<std::uint64_t> signal_mask_of(pid_t tid);
bool set_signal_mask_of(pid_t tid, std::uint64_t mask);

// Eight bytes of its memory, in less time than proc::Memory takes; also nothing if not all of them
// are readable.
std::optional<std::uint64_t> word_at(pid_t tid, Address at);

inline constexpr std::uint64_t all_signals = ~std::uint64_t{0};

// What waitpid(2) reports of a system call's entry or exit, under PTRACE_O_TRACESYSGOOD.
inline constexpr int system_call_stop = 5 | 0x80;  // SIGTRAP
// That it is the entry, by PTRACE_GETEVENTMSG. <linux/ptrace.h> has this, but does not go together
// with <sys/ptrace.h>. Since Linux 5.3.
inline constexpr std::uint64_t message_of_system_call_entry = 1;

std::uint64_t event_message(pid_t tid);

}  // namespace shadowprof::ptrace
