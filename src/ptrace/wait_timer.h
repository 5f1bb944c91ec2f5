// Sleeping until something happens to a tracee of this thread, or a point in time, or until another
// thread wants it to end. Private to the room.
//
// One sleeps in waitid(2) itself: nobody else's tracees wake the sleeper. A replica may stop a
// hundred thousand times a second, and would by every signal that told of it (SIGCHLD, which is
// therefore not sent for stops, see prepare_tracing_thread()). Waitid knows no timeout; a signal
// has to end it, and is let in just for the time of the call. As it might still come too early, the
// handler does not return, but leaves the call or what precedes it by a long jump.
#pragma once

#include <time.h>

#include <chrono>
#include <functional>

namespace shadowprof::ptrace {

// Belongs to the thread that made it.
class WaitTimer {
  public:
    WaitTimer();
    ~WaitTimer();
    WaitTimer(const WaitTimer&) = delete;
    WaitTimer& operator=(const WaitTimer&) = delete;

    void sleep_until_status(std::chrono::steady_clock::time_point deadline);
    // Makes a system call that may sleep, and leaves it at the deadline, or earlier. Whether it had
    // been carried out by then has to be found out.
    void leave_at(std::chrono::steady_clock::time_point deadline,
                  const std::function<void()>& call);

    // The signal: sent to a thread it ends its sleep, now or at once when it begins.
    static int signal();
    // Of the whole process: what the signal does. Threads block it.
    static void install();

  private:
    timer_t timer_{};
};

}  // namespace shadowprof::ptrace
