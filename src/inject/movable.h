// Whether a stopped thread may be made to run code of ours for a moment, and the state with which
// it has to go on afterwards.
#pragma once

#include <cstdint>
#include <optional>

#include "ptrace/tracer.h"

namespace shadowprof::inject {

struct ThreadState {
    // Outside of any system call (orig_rax is -1) and of any restartable sequence.
    ptrace::Registers registers;
    std::uint64_t signal_mask = 0;
    bool was_in_system_call = false;  // in one that is over
};

// Nothing if the thread would notice that it is moved: it is not stopped by interrupt(), is in a
// system call that the kernel would restart or Tracer::repair_interrupted_call() might, is being
// stepped, or does not run 64-bit code.
std::optional<ThreadState> state_if_movable(const ptrace::Thread&);
// The same for a thread that may also have stopped for a signal, with which it is let go on.
std::optional<ThreadState> state_if_movable_with_signal(const ptrace::Thread&);

// Whether the program has its system calls, but for those of some code, answered by a signal, as
// Wine does. Such a thread is not movable.
bool dispatches_system_calls(pid_t tid);

// Whether the program uses restartable sequences (rseq(2)). The only sign of that is the pointer to
// a sequence that it left behind.
bool uses_restartable_sequences(const ptrace::Thread&);

// Whether the thread stands before restart_syscall(2). Rt_sigreturn would make the kernel forget
// what is to be resumed.
bool is_about_to_resume_a_sleep(const ptrace::Thread&, const ptrace::Registers&);

}  // namespace shadowprof::inject
