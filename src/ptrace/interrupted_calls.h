// System calls that return EINTR when a thread is woken without a signal handler to run.
//
// Most system calls that are disturbed in their sleep answer with one of the kernel's internal
// ERESTART codes, and are restarted by the kernel itself when no handler runs: nobody notices. A
// few answer EINTR at once. Natively that does not happen without a reason the program knows. Under
// ptrace it does: PTRACE_INTERRUPT wakes a sleeper, and so does a signal that the program ignores,
// which the kernel queues only because a tracer might want to see it. For those calls
// (proc/call_facts.h) the remedy is to do what the kernel does for the others: put the call's
// number back into rax and rip back onto the instruction. That is right because they answer EINTR
// only when they have done nothing yet. call_repair.h decides when to repair one.
//
// A call that is issued again waits for its whole timeout again. If it were disturbed often enough
// it would never end, so a call that has waited long enough in all is answered as if its time were
// over.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/address.h"
#include "ptrace/registers.h"

namespace shadowprof::ptrace {

// Whether the thread is past such a system call that answered EINTR.
bool answered_eintr(const Registers&);

bool is_system_call_at(pid_t process, Address);

void issue_again(Registers&);
void answer_eintr(Registers&);  // undoes issue_again()
void answer_timed_out(Registers&);

// How long the call would have waited; nothing if forever, or if that is unknown.
std::optional<std::chrono::nanoseconds> timeout_of_call(pid_t process, const Registers&);

}  // namespace shadowprof::ptrace
