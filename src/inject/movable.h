// Whether a stopped thread may be made to run something else for a moment, and the state with which
// it then has to go on.
#pragma once

#include <cstdint>
#include <optional>

#include "ptrace/tracer.h"

namespace shadowprof::inject {

struct ThreadState {
    // Outside of any system call (orig_rax is -1) and of any restartable sequence.
    ptrace::Registers registers;
    std::uint64_t signal_mask = 0;
    bool was_in_system_call = false;  // which is over
};

// Nothing if the thread cannot be moved without its noticing: it is not stopped by interrupt(), is
// in a system call that the kernel would restart or Tracer::repair_interrupted_call() might, is
// being stepped, or does not run 64-bit code.
std::optional<ThreadState> state_if_movable(const ptrace::Thread&);
// The same of a thread that may also have stopped for a signal, which it is let go on with.
std::optional<ThreadState> state_if_movable_with_signal(const ptrace::Thread&);

// Its program has the system calls of all code but some answered by a signal, as Wine does: such a
// thread is not movable.
bool dispatches_system_calls(pid_t tid);

// Its program uses restartable sequences (rseq(2)): by what it left behind, for there is no other
// sign.
bool uses_restartable_sequences(const ptrace::Thread&);

// It stands before restart_syscall(2). Rt_sigreturn would make the kernel forget what is to be
// resumed.
bool is_about_to_resume_a_sleep(const ptrace::Thread&, const ptrace::Registers&);

}  // namespace shadowprof::inject
