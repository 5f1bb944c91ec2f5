// Whom a sample is taken of, and how that thread is stopped: one is chosen, displaced from its
// processor at the moment it is asked to stop (preemptor.h), and known until it has answered.
#pragma once

#include <sys/types.h>

#include <array>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/random.h"
#include "ptrace/tracer.h"
#include "sampling/schedule/preemptor.h"
#include "sampling/schedule/thread_list.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

class ThreadStopper {
  public:
    ThreadStopper(ThreadList& threads, Random random) : threads_(threads), random_(random) {}

    // A thread that is asked to stop must first get a core. Where many wait for one, that takes
    // many times as long as the budget lets pass between samples: so others are asked meanwhile.
    bool may_ask_another() const { return asked_.size() < most_asked; }

    // Chooses the thread for the next sample. Choosing takes a processor for a while.
    void choose();
    // It is to be asked after `rest()`, when things have taken their usual course again.
    void aim();
    static Seconds rest();

    struct Attempt {
        bool is_to_be_repeated = false;    // aim again: it could not be displaced
        ptrace::Thread* thread = nullptr;  // the one that runs, if any
        std::optional<Clock::time_point> displaced_since;
    };
    // Finds the thread that runs at this very moment, and keeps it from its processor.
    Attempt look();
    // Asks the thread that was found. False if it is not there any more.
    bool ask(const Attempt& attempt);
    // Nobody is kept from a processor any more; after look(), whether it was asked or not.
    void release();

    struct Asked {
        Clock::time_point when;
        Seconds displaced;  // before
    };
    // If the event is of a thread that was asked: it has answered.
    std::optional<Asked> answer(const ptrace::Event& event);
    bool has_asked(const ptrace::Thread& thread) const;
    // Events go to somebody else from now on.
    void forget_asked() { asked_.clear(); }

  private:
    static constexpr std::size_t most_asked = 16;

    struct Running {
        ptrace::Thread* thread = nullptr;
        std::optional<int> processor;  // of that, unless it has gone to sleep
    };
    Running running_thread();
    std::optional<int> processor_of(pid_t tid);

    ThreadList& threads_;
    Random random_;
    // The first is sent beforehand, the second if the thread has moved. One that has just been
    // somewhere would not displace anyone so soon again.
    std::array<Preemptor, 2> preemptors_;
    Clock::time_point looks_at_;                                 // if we are woken in time
    Seconds our_wake_up_ = tuning::longest_wake_up_of_ours / 2;  // how late we were of late
    pid_t chosen_ = 0;
    int missed_ = 0;  // so many times
    std::map<const ptrace::Thread*, Asked> asked_;
};

}  // namespace shadowprof::sampling
