// Bursts of single-stepping: at randomised times a running thread is stopped, stepped through
// `sample_size` instructions, and released.
#pragma once

#include <memory>
#include <optional>

#include "emu/stepper.h"
#include "shadow/budget.h"
#include "shadow/sampling.h"

namespace shadowprof::shadow {

class StepBursts : public Sampling {
  public:
    explicit StepBursts(Workplace place);

    ptrace::Clock::time_point next_tick() const override { return next_tick_; }
    void tick() override;
    bool take(const ptrace::Event& event) override;
    void wind_up(const std::string& reason) override;
    Cost cost() const override { return cost_; }

  private:
    void begin_burst(ptrace::Thread& thread);
    void end_burst(bool thread_is_there);
    void schedule(Seconds wait);

    Workplace place_;
    Budget budget_;
    ptrace::Clock::time_point next_tick_;
    ptrace::Thread* interrupting_ = nullptr;  // asked to stop, has not yet
    std::unique_ptr<emu::Stepper> stepper_;
    ptrace::Clock::time_point stopped_since_;  // of the part of the burst outside system calls
    Seconds burst_cost_{0};
    std::uint32_t samples_ = 0;
    Cost cost_;
};

}  // namespace shadowprof::shadow
