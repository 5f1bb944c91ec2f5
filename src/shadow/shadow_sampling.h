// Mode shadow: shadows, or, where a program can have none, bursts of emulation. If it has none
// because others need all processors, that may pass: then they are tried again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shadow/emulated_bursts.h"
#include "shadow/shadows.h"

namespace shadowprof::shadow {

class ShadowSampling : public Sampling {
  public:
    explicit ShadowSampling(Workplace place);

    ptrace::Clock::time_point next_tick() const override;
    void tick() override;
    bool take(const ptrace::Event& event) override;
    void wind_up(const std::string& reason) override;
    bool is_complete() const override { return way().is_complete(); }
    Cost cost() const override;
    std::vector<std::string> warnings() const override;

  private:
    Bursts& way() const { return shadows_ ? static_cast<Bursts&>(*shadows_) : *bursts_; }
    void change_way();
    void go_over_to_bursts();
    void return_to_shadows();
    void forget_way();
    Workplace place_with(const Options& options);

    Workplace place_;
    Options shadow_options_, burst_options_;
    std::unique_ptr<Shadows> shadows_;
    std::unique_ptr<EmulatedBursts> bursts_;  // if there are none
    ptrace::Clock::time_point began_;         // in this way
    Cost cost_of_others_;                     // before it
    std::string why_none_;                    // the last time
    std::vector<std::string> advice_;
    // Without shadows, until they are tried again; and for how long, in all, before this way.
    Seconds pause_;
    ptrace::Clock::time_point again_at_ = ptrace::Clock::time_point::max();
    Seconds without_{0};
};

}  // namespace shadowprof::shadow
