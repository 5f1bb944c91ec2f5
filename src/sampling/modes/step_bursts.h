// Bursts of single-stepping: slow, and beyond doubt.
#pragma once

#include <memory>

#include "base/clock.h"
#include "emu/stepper/stepper.h"
#include "sampling/schedule/stop_sampler.h"

namespace shadowprof::sampling {

class StepBursts : public StopSampler {
  public:
    using StopSampler::StopSampler;
    void wind_up(const std::string& reason) override;

  private:
    void end_burst_in_progress(const std::string& reason);
    void begin(ptrace::Thread& thread, const ptrace::Registers& registers) override;
    bool in_progress() const override { return stepper_ != nullptr; }
    bool take_own(const ptrace::Event& event) override;
    void overdue() override;
    void end_burst(bool thread_is_there);

    trace::SampleId sample_{};
    std::unique_ptr<emu::Stepper> stepper_;
    Clock::time_point stopped_since_;  // of the part of the burst outside system calls
    Seconds cost_of_burst_{0};
};

}  // namespace shadowprof::sampling
