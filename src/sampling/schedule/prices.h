// What looking at the target costs it, as the sampler asks. OverheadModel (overhead_model.h) knows
// it of this host; a test has prices of its own.
#pragma once

#include <optional>

#include "base/clock.h"

namespace shadowprof::sampling {

struct PriceOfStop {
    Seconds stop;       // and what comes with it
    Seconds computing;  // what the profiler computed since the last one, if no processor was free
};

class Prices {
  public:
    virtual ~Prices() = default;

    // A thread that was asked then, when it had been kept from its processor for so long, has
    // stopped, as far as we know just now.
    virtual void stopped(Clock::time_point asked, Seconds displaced) = 0;
    // It was held for so long in all, and has been released. `unseen`: what follows, if that is
    // known.
    virtual PriceOfStop of_stop(Seconds held, std::optional<Seconds> unseen) = 0;
    // A stop just now that yields no sample.
    virtual Seconds of_passing_stop() = 0;
    // A replica has computed for so long, on another processor, and what it left was digested.
    virtual Seconds of_replica(Seconds replica_computed) = 0;
    // Whether a processor has nothing else to do, so that what is computed there costs nobody
    // anything.
    virtual bool is_any_core_free() { return true; }
    // The caller has just computed for so long: what that costs. It is no part of the next stop's
    // price then.
    virtual Seconds of_computing(Seconds) { return {}; }
    // How long the caller's thread has computed so far.
    virtual Seconds computed_here() const { return {}; }
    // How long the program has computed so far, in all threads together.
    virtual Seconds program_computed() const { return {}; }
    // What computing beside the program takes of its time, for each second of that.
    virtual double taken_beside() const = 0;
};

}  // namespace shadowprof::sampling
