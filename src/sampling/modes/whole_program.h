// Steps every thread of a program from its first instruction to its last: one exhaustive sample.
#pragma once

#include <map>

#include "base/clock.h"
#include "emu/stepper/stepper.h"
#include "sampling/sampling.h"

namespace shadowprof::sampling {

class WholeProgram : public Sampling {
  public:
    explicit WholeProgram(SamplerContext place) : place_(std::move(place)) {}

    Clock::time_point next_tick() const override { return Clock::time_point::max(); }
    void tick() override {}
    bool take(const ptrace::Event& event) override;
    void wind_up(const std::string& reason) override;
    Cost cost() const override { return cost_; }
    bool saw_everything() const override { return saw_everything_; }

  private:
    using Steppers = std::map<pid_t, std::unique_ptr<emu::Stepper>>;
    void follow(const ptrace::Event& event);
    void retire(Steppers::iterator stepper, bool thread_is_there);

    SamplerContext place_;
    Steppers steppers_;
    std::uint32_t traces_ = 0;
    bool saw_everything_ = true;
    Clock::time_point began_ = Clock::now();
    Cost cost_;
};

}  // namespace shadowprof::sampling
