// Sleeping until something happens to a tracee of this thread, or a point in time, or until another
// thread wants it to end. Private to the room.
//
// The thread sleeps in waitid(2) itself, so that only its own tracees wake it. If it slept until
// SIGCHLD came, every replica would wake it, and one may stop a hundred thousand times a second.
// (SIGCHLD is therefore not sent for stops, see signal_stops().) Waitid knows no timeout; a signal
// has to end it, and is unblocked just for the time of the call. As the signal might still come too
// early, its handler does not return, but leaves the call, or what precedes it, by a long jump.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>
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
    // Sleeps until somebody has changed the word in shared memory from this value and says so by
    // futex(2), or something happens to a tracee: stops have to be signalled, see signal_stops().
    void sleep_until_change(std::uint32_t& word, std::uint32_t from,
                            std::chrono::steady_clock::time_point deadline);
    // Makes a system call that may sleep, and leaves it at the deadline, or earlier. The caller has
    // to find out whether the call was carried out by then.
    void leave_at(std::chrono::steady_clock::time_point deadline,
                  const std::function<void()>& call);

    // The signal that ends a thread's sleep: now, or as soon as a sleep begins.
    static int signal();
    // Sets what the signal does, for the whole process. All threads block it.
    static void install();
    // Somebody wants it sent for stops as well, or wants it no longer.
    static void signal_stops(bool wanted);

  private:
    timer_t timer_{};
};

}  // namespace shadowprof::ptrace
