// Lets go of all threads of a process that is still alive, without a trace. Private to the room.
#pragma once

#include "ptrace/call_repair.h"
#include "ptrace/event_reader.h"
#include "ptrace/traced_threads.h"
#include "ptrace/wait_timer.h"

namespace shadowprof::ptrace {

class Detacher {
  public:
    Detacher(TracedThreads& threads, EventReader& reader, CallRepair& repair, WaitTimer& timer)
        : threads_(threads), reader_(reader), repair_(repair), timer_(timer) {}

    void let_go_of_everything();

  private:
    void release(Thread& thread);
    static bool is_awaited(const Thread& thread);
    // Nothing if there are no tracees any more; else whether any thread had something to report.
    std::optional<bool> release_reported();

    TracedThreads& threads_;
    EventReader& reader_;
    CallRepair& repair_;
    WaitTimer& timer_;
};

}  // namespace shadowprof::ptrace
