#include "shadow/shadow_sampling.h"

#include <fmt/format.h>

#include <algorithm>

namespace shadowprof::shadow {

namespace {

using ptrace::Clock;

// Trying costs a few forks; each time it was in vain the next comes after twice as long.
constexpr Seconds shortest_pause{5}, longest_pause{60};

}  // namespace

ShadowSampling::ShadowSampling(Workplace place)
    : place_(std::move(place)),
      shadow_options_(place_.options),
      burst_options_(place_.options),
      shadows_(std::make_unique<Shadows>(place_with(shadow_options_))),
      began_(Clock::now()),
      pause_(shortest_pause) {
    burst_options_.mode = Mode::burst;
    burst_options_.sample_size = Options::default_burst;
}

Workplace ShadowSampling::place_with(const Options& options) {
    return {options,          place_.tracer,       place_.code,     place_.digester,
            place_.blocks,    place_.modules,      place_.segments, place_.numbers,
            place_.precision, place_.random.fork()};
}

Clock::time_point ShadowSampling::next_tick() const {
    return std::min(way().next_tick(), again_at_);
}

void ShadowSampling::tick() {
    if (Clock::now() >= way().next_tick()) way().tick();
    change_way();
}

bool ShadowSampling::take(const ptrace::Event& event) {
    const bool taken = way().take(event);
    change_way();
    return taken;
}

void ShadowSampling::change_way() {
    if (shadows_ && shadows_->impossible()) go_over_to_bursts();
    if (bursts_ && Clock::now() >= again_at_) return_to_shadows();
}

void ShadowSampling::go_over_to_bursts() {
    shadows_->wind_up("the end of shadows");
    why_none_ = *shadows_->impossible();
    if (shadows_->is_biased())
        place_.digester.forget();
    else if (const auto rate = shadows_->instructions_a_second(); rate > 0)
        burst_options_.instructions_a_second = rate;
    if (shadows_->are_too_dear() && place_.code.plan().has(trace::Capture::latency))
        advice_ = {"bursts know no latencies: ask for these alone, -p latency"};
    const bool were_of_use = Clock::now() - began_ > longest_pause;
    if (were_of_use) pause_ = shortest_pause;
    if (shadows_->may_be_possible_later()) {
        again_at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pause_);
        pause_ = std::min(2 * pause_, longest_pause);
    }
    forget_way();
    bursts_ = std::make_unique<EmulatedBursts>(place_with(burst_options_));
}

void ShadowSampling::return_to_shadows() {
    bursts_->wind_up("the end of bursts");
    without_ += Clock::now() - began_;
    again_at_ = Clock::time_point::max();
    forget_way();
    shadows_ = std::make_unique<Shadows>(place_with(shadow_options_));
}

void ShadowSampling::forget_way() {
    cost_of_others_ += way().cost();
    const bool counts = !shadows_ || !shadows_->is_biased();
    for (auto* options : {&shadow_options_, &burst_options_})
        if (auto& most = options->most_samples; most && counts)
            *most -= std::min(*most, way().samples());
    shadows_.reset();
    bursts_.reset();
    began_ = Clock::now();
}

void ShadowSampling::wind_up(const std::string& reason) {
    way().wind_up(reason);
}

Cost ShadowSampling::cost() const {
    auto cost = cost_of_others_;
    cost += way().cost();
    return cost;
}

std::vector<std::string> ShadowSampling::warnings() const {
    auto warnings = advice_;
    auto without = without_;
    if (bursts_) without += Clock::now() - began_;
    if (without == Seconds{0}) return warnings;
    const bool since_then = bursts_ && without_ == Seconds{0};
    const auto line =
        since_then ? fmt::format("no replicas of this program ({}): it was sampled in mode burst",
                                 why_none_)
                   : fmt::format("no replicas for {:.0f} s ({}): then it was sampled in mode burst",
                                 without.count(), why_none_);
    warnings.insert(warnings.begin(), line);
    return warnings;
}

}  // namespace shadowprof::shadow
