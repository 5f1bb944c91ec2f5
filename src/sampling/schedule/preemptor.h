// Keeps a processor from its thread for the moment in which that is asked to stop.
//
// A thread that is asked from another processor runs on until an interrupt reaches it, and under a
// hypervisor that takes twenty microseconds. If it makes a system call meanwhile, it stops behind
// the call. Code that is never further than that from the next system call, a server's for
// instance, would hardly ever be seen, and its beginnings more often than its ends.
//
// But a thread that has been displaced from its processor when it is asked stops where it was
// displaced. Nor has it gone to sleep, since it was seen to run, in a call that would tell of the
// disturbance if we died before we have mended it (interrupted_calls.h). That must not be done from
// another processor either, for the same reason: so a thread of ours goes there some time before
// and sleeps until the moment has come.
#pragma once

#include <semaphore.h>
#include <sys/types.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "ptrace/tracer.h"

namespace shadowprof::sampling {

class Preemptor {
  public:
    Preemptor();
    ~Preemptor();
    Preemptor(const Preemptor&) = delete;
    Preemptor& operator=(const Preemptor&) = delete;

    // Whoever runs on this processor then will be displaced.
    void send(int processor, Clock::time_point when);
    // Waits until that has happened, or until it is clear that it will not. To be
    // called no sooner: who waits takes a processor from others, and those that the displaced one
    // waits for would not be served.
    void await();
    // Since when a thread that would run, on that processor, cannot, if so: it stops where it was
    // displaced, and not in a system call that it has made meanwhile, to find itself disturbed
    // there.
    std::optional<Clock::time_point> occupies_since(int processor) const;
    // The same, or else since when the caller's own thread keeps that one from its processor, where
    // it waits if all others are busy: it has been there since `asking_since`, for so short a time
    // that nobody has taken the other over.
    std::optional<Clock::time_point> displaced_since(int processor,
                                                     Clock::time_point asking_since) const;
    void release();

  private:
    // All but `home` are of one errand.
    enum class State { home, coming, there, met, released };

    void run();
    void stay();
    bool move_to(int processor);

    std::atomic<State> state_{State::home};
    std::atomic<pid_t> tid_{0};
    std::atomic<bool> closing_{false};
    Clock::time_point when_, arrived_;
    std::atomic<Clock::time_point> last_ran_;
    int processor_ = -1;
    sem_t sent_;
    std::thread thread_;
};

}  // namespace shadowprof::sampling
