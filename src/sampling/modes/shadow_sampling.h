// Mode shadow: shadows, or, where a program can have none, bursts of emulation. If it has none
// because others need all processors or the memory, that may pass: then they are tried again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "sampling/modes/emulated_bursts.h"
#include "sampling/modes/shadows.h"

namespace shadowprof::sampling {

class ShadowSampling : public Sampling {
  public:
    explicit ShadowSampling(SamplerContext place);

    Clock::time_point next_tick() const override;
    void tick() override;
    bool take(const ptrace::Event& event) override;
    void wind_up(const std::string& reason) override;
    bool is_complete() const override { return way().is_complete(); }
    Cost cost() const override;
    std::vector<std::string> warnings() const override;

  private:
    const Sampling& way() const {
        return bursts_ ? static_cast<const Sampling&>(*bursts_) : *shadows_;
    }
    void change_way();
    void begin_bursts();
    void end_bursts();
    void pause_shadows();
    void charge_bursts();
    SamplerContext place_with(const Options& options);

    SamplerContext place_;
    Options shadow_options_, burst_options_;
    std::unique_ptr<Shadows> shadows_;
    std::unique_ptr<EmulatedBursts> bursts_;  // meanwhile, or for good
    Clock::time_point began_, bursts_began_;
    Clock::time_point again_at_ = Clock::time_point::max();
    Seconds pause_;        // the next one
    Seconds charged_{0};   // of what shadows cost: what bursts need not spare any more
    Cost cost_of_bursts_;  // before these
    bool advises_latencies_ = false;
};

}  // namespace shadowprof::sampling
