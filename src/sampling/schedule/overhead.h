// What part of the target's time profiling may take, and what of it each thing may have. All of
// that is decided here; when samples are due follows from it (budget.h).
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

class Overhead {
  public:
    explicit Overhead(double most) : most_(most) {}

    double most() const { return most_; }
    // The clock may take so much, and says what it does take.
    double for_clock() const {
        return std::min(tuning::most_cost_of_looks, most_ * tuning::part_of_budget_for_looks);
    }
    // What looks into interpreters may take besides, which is charged to samples.
    double for_close_looks() const { return most_ * tuning::part_of_budget_for_close_looks; }
    void clock_takes(double part) { of_clock_ = part; }
    // Samples have the rest; what follows is a part of theirs.
    double for_samples() const { return most_ - of_clock_; }
    double for_work_ahead() const { return for_samples() * tuning::part_of_budget_for_work_ahead; }
    double for_replicas_computing() const {
        return for_samples() * tuning::part_of_budget_for_computing;
    }
    // Of a replica's life.
    Seconds for_copies_of_one() const { return for_samples() * tuning::most_time_of_budget; }

  private:
    double most_, of_clock_ = 0;
};

}  // namespace shadowprof::sampling
