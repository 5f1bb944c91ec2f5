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
    ThreadSeizer(TracedThreads& threads, EventReader& reader, WaitTimer& timer)
        : process_(threads.process()), threads_(threads), reader_(reader), timer_(timer) {}

    // Throws UserError if one cannot be seized.
    void seize_all();
    // As many as can be, without a word.
    void seize_possible();
    // False, and errno is set, if it cannot be seized.
    bool seize_or_yield_to_exec(pid_t tid);
    static bool has_ended_or_is_ours(pid_t pid, pid_t tid);
    // Looks for threads that were missed, if it is time to.
    void look_for_missed();

  private:
    pid_t process_;
    TracedThreads& threads_;
    EventReader& reader_;
    WaitTimer& timer_;
    Clock::duration between_looks_ = tuning::first_look_for_missed;
    Clock::time_point next_look_ = Clock::now() + between_looks_;
};

}  // namespace shadowprof::ptrace
