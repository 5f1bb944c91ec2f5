// Keeps a processor from its thread for the moment in which the thread is asked to stop.
//
// A thread that is asked from another processor runs on until an interrupt reaches it, and under a
// hypervisor that takes twenty microseconds. If it makes a system call meanwhile, it stops behind
// the call. Code that is never further than that from the next system call, a server's for
// instance, would hardly ever be seen, and its beginnings more often than its ends.
//
// But a thread that has been displaced from its processor when it is asked stops where it was
// displaced. Nor can it have gone to sleep since it was seen to run, in a call that would show the
// disturbance if we died before mending it (interrupted_calls.h). For the same reason the
// displacing must not come from another processor either: so a thread of ours goes there some time
// before, and sleeps until the moment has come.
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

    // The thread that runs on this processor then will be displaced.
    void send(int processor, Clock::time_point when);
    // Waits until that has happened, or until it is clear that it will not. To be called no sooner:
    // waiting takes a processor from others, which the displaced thread may be waiting for.
    void await();
    // Since when a thread that would run on that processor cannot, if so. It stops where it was
    // displaced, and not in a system call that it has made meanwhile.
    std::optional<Clock::time_point> occupies_since(int processor) const;
    // The same; or the caller's own thread occupies that processor, has done so since
    // `asking_since`, and for so short a time that no other processor has taken the waiting thread
    // over.
    std::optional<Clock::time_point> displaced_since(int processor,
                                                     Clock::time_point asking_since) const;
    void release();

  private:
    // All but `home` belong to one errand.
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
