// Takes hold of the threads of a running process without stopping it. Private to the room.
//
// Threads come and go meanwhile. A thread that we hold passes the hold on to those it starts, so
// looking again until nothing new is seen ends with all of them held, but for those that were just
// being created, and could not be seen yet, when their creators were seized. One looks again for
// these later.
#pragma once

#include <sys/types.h>

#include "base/clock.h"
#include "ptrace/event_reader.h"
#include "ptrace/traced_threads.h"
#include "ptrace/tuning.h"
#include "ptrace/wait_timer.h"

namespace shadowprof::ptrace {

class ThreadSeizer {
  public:
    // Seizes all threads. Throws UserError if one cannot be seized.
    ThreadSeizer(TracedThreads& threads, EventReader& reader, WaitTimer& timer);
    // Looks for threads that were missed, if it is time to.
    void look_for_missed();

  private:
    void seize_all();
    bool seize_or_yield_to_exec(pid_t tid);

    pid_t process_;
    TracedThreads& threads_;
    EventReader& reader_;
    WaitTimer& timer_;
    Clock::duration between_looks_ = tuning::first_look_for_missed;
    Clock::time_point next_look_;
};

}  // namespace shadowprof::ptrace
