// Runs a program in the code cache, from its first instruction, or from when we attached to it, to
// its last.
#pragma once

#include "base/clock.h"
#include "emu/translator/translated_process.h"
#include "sampling/sampling.h"

namespace shadowprof::sampling {

class FullProgram : public Sampling {
  public:
    explicit FullProgram(SamplerContext place);

    Clock::time_point next_tick() const override { return next_tick_; }
    void tick() override;
    void answer() override { process_.answer(); }
    bool work_ahead() override { return has_processor_of_its_own_ && process_.work_ahead(); }
    bool take(const ptrace::Event& event) override;
    void wind_up(const std::string& reason) override;
    Cost cost() const override { return cost_; }
    bool saw_everything() const override { return process_.saw_everything(); }
    std::vector<std::string> warnings() const override { return process_.warnings(); }

  private:
    SamplerContext place_;
    emu::KnownCode known_;
    emu::translator::TranslatedProcess process_;
    bool has_processor_of_its_own_;  // so that what it does ahead takes no time from the program
    Clock::time_point began_ = Clock::now();
    Clock::time_point next_tick_;
    Cost cost_;
};

}  // namespace shadowprof::sampling
