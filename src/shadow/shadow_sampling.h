// Mode shadow: shadows, or, where a program can have none, bursts of emulation.
#pragma once

#include "shadow/emulated_bursts.h"
#include "shadow/shadows.h"

namespace shadowprof::shadow {

class ShadowSampling : public Sampling {
  public:
    explicit ShadowSampling(Workplace place);

    ptrace::Clock::time_point next_tick() const override { return way().next_tick(); }
    void tick() override;
    bool take(const ptrace::Event& event) override;
    void wind_up(const std::string& reason) override;
    bool is_complete() const override { return way().is_complete(); }
    Cost cost() const override;
    std::vector<std::string> warnings() const override;

  private:
    Sampling& way() const { return bursts_ ? static_cast<Sampling&>(*bursts_) : *shadows_; }
    void change_way();

    Options burst_options_;
    Workplace place_;
    std::unique_ptr<Shadows> shadows_;
    std::unique_ptr<EmulatedBursts> bursts_;
};

}  // namespace shadowprof::shadow
