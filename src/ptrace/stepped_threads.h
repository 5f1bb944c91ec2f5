// Threads that are being stepped, so that whoever crashes can let go of them first.
//
// When a tracing thread ends, the kernel releases what it traces and leaves the trap flag of a
// stepped thread set: SIGTRAP then ends the program. So nobody who can still do anything ends
// before the threads that are stepped have been detached from, which clears the flag. Nothing but
// system calls and atomic words is used here: it may be done by a handler of a fatal signal.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace shadowprof::ptrace {

// The calling thread steps, or has stepped, this thread, which has not been let go on otherwise.
class SteppedMark {
  public:
    SteppedMark() = default;
    ~SteppedMark() { clear(); }
    SteppedMark(const SteppedMark&) = delete;
    SteppedMark& operator=(const SteppedMark&) = delete;

    void set(pid_t tid);
    void clear();

  private:
    static constexpr std::size_t none = ~std::size_t{0};
    std::size_t place_ = none;
};

// For a handler of the fatal signal `signal`: the calling thread lets go of the threads that it
// steps. Each other thread of this process that steps some is sent the signal, so that its handler
// does the same, and is waited for a while.
void let_go_of_stepped(int signal);

}  // namespace shadowprof::ptrace
