// What looking at the target costs it on this host: more than the time between "it is stopped" and
// "it may go on". A stop begins before we hear of it and ends after we allowed it to, and
// afterwards the thread finds its caches and TLB cold. And where every core is busy, the time that
// the profiler itself computes is taken from somebody: from the target, or from one that it may
// wait for, as a server does for its clients; on many-core machines rarely from either.
#pragma once

#include <sys/types.h>

#include "base/clock.h"
#include "machine/host_charges.h"
#include "machine/processor_time.h"
#include "proc/processors.h"
#include "sampling/schedule/prices.h"

namespace shadowprof::sampling {

class OverheadModel : public Prices {
  public:
    // Whether what the profiler computes beside the stops takes time from anyone: at idle priority
    // it does not.
    OverheadModel(pid_t target, machine::HostCharges& host, bool computes_beside);

    void stopped(Clock::time_point asked, Seconds displaced) override;
    PriceOfStop of_stop(Seconds held, std::optional<Seconds> unseen) override;
    Seconds of_passing_stop() override { return host_.passing_stop(); }
    Seconds of_replica(Seconds replica_computed) override;
    bool is_any_core_free() override;
    Seconds of_computing(Seconds time) override;
    Seconds computed_here() const override;
    Seconds program_computed() const override { return target_computes_.so_far(); }
    double taken_beside() const override;

  private:
    void count_own_time(Seconds but_for);
    Seconds of_taking(Seconds time) const;
    Seconds taken_by(Seconds time) const;  // of what we computed
    bool is_mostly_free() const { return part_of_time_without_spare() < 0.5; }
    double part_of_time_without_spare() const;
    bool target_computes_all_the_time() const;

    machine::HostCharges& host_;
    bool computes_beside_;
    machine::ComputingShare target_computes_;
    machine::SpareProcessors spare_;
    proc::Cores usable_ = proc::usable_cores();
    bool has_processors_;  // more than one, to the program and us
    // Of the last stop: how long the thread was displaced before it, and we were being woken.
    Seconds displaced_{0}, woken_{0};
    Seconds computed_here_before_, computed_before_replica_;
    Seconds taken_{0};  // by what we computed since the last stop
};

}  // namespace shadowprof::sampling
