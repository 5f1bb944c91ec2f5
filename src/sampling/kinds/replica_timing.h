// What replicas have shown of the time that the target takes: how long the next ones wait before
// they begin, and what their translated code is to take for an instruction's time.
#pragma once

#include <atomic>

#include "base/clock.h"
#include "emu/translator/translated_replica.h"
#include "sampling/options.h"

namespace shadowprof::sampling {

// Any thread may ask or tell.
class ReplicaTiming {
  public:
    explicit ReplicaTiming(const Options& options);

    // How long a replica waits before it begins.
    Seconds settling() const { return settling_; }
    void adapt_settling(double nanoseconds_of_block);

    emu::translator::Experience experience() const;
    void learn(double nanoseconds_of_instruction);

  private:
    const Options& options_;
    std::atomic<Seconds> settling_;
    std::atomic<double> usual_of_instruction_ = 0;  // nanoseconds, or 0
};

}  // namespace shadowprof::sampling
