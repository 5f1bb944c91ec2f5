// Bursts of single-stepping: slow, and beyond doubt.
#pragma once

#include <memory>

#include "emu/stepper.h"
#include "shadow/bursts.h"

namespace shadowprof::shadow {

class StepBursts : public Bursts {
  public:
    using Bursts::Bursts;
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
    ptrace::Clock::time_point stopped_since_;  // of the part of the burst outside system calls
    Seconds cost_of_burst_{0};
};

}  // namespace shadowprof::shadow
