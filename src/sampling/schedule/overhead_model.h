// What looking at the target costs it: more than the time between "it is stopped" and "it may go
// on". A stop begins before we hear of it and ends after we allowed it to, and afterwards the
// thread finds its caches and TLB cold. And where every core is busy, the time that the profiler
// itself computes is taken from somebody: from the target, or from one that it may wait for, as a
// server does for its clients; on many-core machines rarely from either.
#pragma once

#include <sys/types.h>

#include "base/clock.h"
#include "machine/processor_time.h"
#include "proc/processors.h"
#include "ptrace/tracer.h"
#include "sampling/options.h"

namespace shadowprof::sampling {

class OverheadModel {
  public:
    // Whether what the profiler computes beside the stops takes time from anyone: at idle priority
    // it does not.
    OverheadModel(pid_t target, bool computes_beside);

    // A thread is about to be asked to stop.
    void interrupting();
    // One that was asked then, when it had been kept from its processor for so long, has stopped,
    // as far as we know just now.
    void stopped(Clock::time_point asked, Seconds displaced);
    // Something may cost more than is likely: if the program waits for whoever is kept from a core,
    // and the digestion, which gives way to all others, gets one nevertheless; or where others make
    // of the machine what they like.
    template <typename Amount>
    struct Estimate {
        Amount likely, most;
    };
    // It was held for so long in all, and has been released: what that costs, and what the profiler
    // has computed beside it since the last time.
    Estimate<Seconds> of_stop(Seconds held);
    // A replica has computed for so long, on another processor, and what it left was digested.
    Estimate<Seconds> of_replica(Seconds replica_computed);
    // What computing beside the program takes of its time, for each second of that.
    Estimate<double> taken_beside() const;

  private:
    bool every_core_has_work() const;
    bool target_computes_all_the_time() const;

    bool computes_beside_;
    Seconds unseen_of_computing_;  // of a stop of a program that computes all the time
    machine::ComputingShare target_computes_;
    proc::RunningThreads running_;
    double processors_;
    proc::Cores usable_ = proc::usable_cores();
    double busy_ = 0;  // how often every core has had work of late
    // Of the last stop: how long the thread was displaced before it, and we were being woken.
    Seconds displaced_{0}, woken_{0};
    Seconds computed_before_{0}, computed_here_before_{0}, computed_before_replica_{0};
};

}  // namespace shadowprof::sampling
