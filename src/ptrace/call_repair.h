// Lets system calls be issued again that returned EINTR only because the program is traced
// (interrupted_calls.h), and takes that back when a signal arrives that would have interrupted the
// call anyway. Private to the room.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "ptrace/registers.h"
#include "ptrace/thread.h"

namespace shadowprof::ptrace {

class CallRepair {
  public:
    explicit CallRepair(pid_t process) : process_(process) {}

    // Of a stopped thread. True if its call will be issued again.
    bool repair(Thread& thread);
    // The thread is stopped in the delivery of a signal.
    void undo_for(Thread& thread, int signal);

  private:
    std::uint64_t slept_by_itself(const Thread& thread) const;
    bool is_still_in_reissued_call(const Thread& thread, const Registers& registers) const;

    pid_t process_;
};

}  // namespace shadowprof::ptrace
