// Samples by single-stepping the thread itself: slow, and beyond doubt.
#pragma once

#include <memory>

#include "base/clock.h"
#include "emu/stepper/stepper.h"
#include "sampling/sampling.h"
#include "sampling/schedule/sample_kind.h"

namespace shadowprof::sampling {

class StepSamples : public SampleKind {
  public:
    StepSamples(SamplerContext place, std::shared_ptr<Pacer> pacer);

    const char* name() const override { return "step"; }

    void begin(ptrace::Thread& thread, const ptrace::Registers& registers) override;
    bool is_holding() const override { return stepper_ != nullptr; }
    void is_overdue() override;
    bool take(const ptrace::Event& event) override;
    void end(const std::string& reason) override;

  private:
    void close(bool thread_is_there);

    SamplerContext place_;
    trace::SampleId sample_{};
    std::unique_ptr<emu::Stepper> stepper_;
    Clock::time_point stopped_since_;  // of the part of the sample outside system calls
    Seconds held_{0};                  // before that
};

}  // namespace shadowprof::sampling
