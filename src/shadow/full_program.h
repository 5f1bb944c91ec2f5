// Runs a program in the code cache: from its first instruction, or from when it was attached to, to
// its last.
#pragma once

#include "emu/translator/translated_process.h"
#include "shadow/sampling.h"

namespace shadowprof::shadow {

class FullProgram : public Sampling {
  public:
    explicit FullProgram(Workplace place);

    ptrace::Clock::time_point next_tick() const override { return next_tick_; }
    void tick() override;
    bool take(const ptrace::Event& event) override { return process_.take(event); }
    void wind_up(const std::string& reason) override;
    Cost cost() const override { return cost_; }
    bool saw_everything() const override { return process_.saw_everything(); }
    std::vector<std::string> warnings() const override { return process_.warnings(); }

  private:
    Workplace place_;
    emu::translator::TranslatedProcess process_;
    ptrace::Clock::time_point began_ = ptrace::Clock::now();
    ptrace::Clock::time_point next_tick_;
    Cost cost_;
};

}  // namespace shadowprof::shadow
