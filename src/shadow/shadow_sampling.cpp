#include "shadow/shadow_sampling.h"

#include <fmt/format.h>

#include <algorithm>

namespace shadowprof::shadow {

ShadowSampling::ShadowSampling(Workplace place)
    : burst_options_(place.options),
      place_(std::move(place)),
      shadows_(std::make_unique<Shadows>(place_)) {
    burst_options_.mode = Mode::burst;
    burst_options_.sample_size = Options::default_burst;
}

void ShadowSampling::tick() {
    way().tick();
    change_way();
}

bool ShadowSampling::take(const ptrace::Event& event) {
    const bool taken = way().take(event);
    change_way();
    return taken;
}

void ShadowSampling::change_way() {
    if (bursts_ || !shadows_->impossible()) return;
    shadows_->wind_up("the end of shadows");
    if (shadows_->is_biased()) {
        place_.digester.forget();
    } else {
        burst_options_.instructions_a_second = shadows_->instructions_a_second();
        if (auto& most = burst_options_.most_samples) *most -= std::min(*most, shadows_->samples());
    }
    bursts_ = std::make_unique<EmulatedBursts>(Workplace{
        burst_options_, place_.tracer, place_.code, place_.digester, place_.blocks, place_.modules,
        place_.segments, place_.numbers, place_.precision, place_.random.fork()});
}

void ShadowSampling::wind_up(const std::string& reason) {
    way().wind_up(reason);
}

Cost ShadowSampling::cost() const {
    auto cost = shadows_->cost();
    if (bursts_) cost += bursts_->cost();
    return cost;
}

std::vector<std::string> ShadowSampling::warnings() const {
    auto warnings = shadows_->warnings();
    if (const auto& why = shadows_->impossible()) {
        warnings.push_back(
            fmt::format("no replicas of this program ({}): it was sampled in mode burst", *why));
        if (shadows_->are_too_dear() && place_.code.plan().has(trace::Capture::latency))
            warnings.push_back("bursts know no latencies: ask for these alone, -p latency");
    }
    return warnings;
}

}  // namespace shadowprof::shadow
