#include "sampling/modes/shadow_sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace shadowprof::sampling {

namespace {

// Trying costs a few forks; each time it was in vain the next comes after twice as long.
constexpr Seconds shortest_pause{5}, longest_pause{60};

void take_away(std::optional<std::uint64_t>& most, std::uint64_t samples) {
    if (most) *most -= std::min(*most, samples);
}

}  // namespace

ShadowSampling::ShadowSampling(SamplerContext place)
    : place_(std::move(place)),
      shadow_options_(place_.options),
      burst_options_(place_.options),
      shadows_(std::make_unique<Shadows>(place_with(shadow_options_))),
      began_(Clock::now()),
      bursts_began_(began_),
      pause_(shortest_pause) {
    burst_options_.mode = Mode::burst;
    burst_options_.sample_size = Options::default_burst;
}

SamplerContext ShadowSampling::place_with(const Options& options) {
    return {options,          place_.tracer,           place_.code,         place_.digester,
            place_.blocks,    place_.modules,          place_.segments,     place_.numbers,
            place_.precision, place_.without_replicas, place_.random.fork()};
}

Clock::time_point ShadowSampling::next_tick() const {
    if (!bursts_) return shadows_->next_tick();
    return std::min({bursts_->next_tick(), again_at_, shadows_->next_tick()});
}

// When there are to be no more replicas, those that are alive are looked after: they have been paid
// for, and of a brief program they may be all that is seen. And what all of them left behind is
// paid for.
void ShadowSampling::tick() {
    const auto now = Clock::now();
    if (bursts_ && now >= bursts_->next_tick()) bursts_->tick();
    if (now >= shadows_->next_tick()) shadows_->tick();
    if (bursts_) charge_bursts();
    change_way();
}

bool ShadowSampling::take(const ptrace::Event& event) {
    const bool is_for_both = event.kind == ptrace::EventKind::exec;
    bool taken = bursts_ && bursts_->take(event);
    if (!bursts_ || is_for_both) taken |= shadows_->take(event);
    change_way();
    return taken;
}

void ShadowSampling::change_way() {
    if (!bursts_ && shadows_->impossible()) begin_bursts();
    if (!bursts_ || Clock::now() < again_at_) return;
    if (shadows_->may_resume())
        end_bursts();
    else
        pause_shadows();
}

void ShadowSampling::pause_shadows() {
    place_.without_replicas.why = shadows_->impossible()->why;
    again_at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pause_);
    pause_ = std::min(2 * pause_, longest_pause);
    shadows_->pause(again_at_);
}

void ShadowSampling::begin_bursts() {
    place_.without_replicas.why = shadows_->impossible()->why;
    advises_latencies_ =
        shadows_->are_too_dear() && place_.code.plan().has(trace::Capture::latency);
    const bool were_of_use = Clock::now() - bursts_began_ > 2 * longest_pause;
    bursts_began_ = Clock::now();
    if (shadows_->is_biased()) {
        // What living ones are about to show is to be forgotten, too.
        shadows_->wind_up("the end of shadows");
        place_.digester.forget();
    } else {
        burst_options_.instructions_a_second = shadows_->instructions_a_second();
        burst_options_.most_samples = shadow_options_.most_samples;
        take_away(burst_options_.most_samples, shadows_->samples());
    }
    if (shadows_->may_be_possible_later()) {
        if (were_of_use) pause_ = shortest_pause;
        pause_shadows();
    } else if (!shadows_->are_any_alive()) {
        shadows_->wind_up("the end of shadows");
    }
    bursts_ = std::make_unique<EmulatedBursts>(place_with(burst_options_));
    const Seconds elapsed = bursts_began_ - began_;
    const auto left_by_bursts = place_.options.overhead * elapsed - cost_of_bursts_.price;
    charged_ = std::clamp(left_by_bursts, Seconds{0}, shadows_->cost().price);
    charge_bursts();
}

// What shadows have overdrawn, and what replicas go on to cost.
void ShadowSampling::charge_bursts() {
    const auto price = shadows_->cost().price;
    bursts_->others_cost(price - std::exchange(charged_, price));
}

void ShadowSampling::end_bursts() {
    bursts_->wind_up("the end of bursts");
    place_.without_replicas.time += Clock::now() - bursts_began_;
    place_.without_replicas.has_ended = true;
    again_at_ = Clock::time_point::max();
    cost_of_bursts_ += bursts_->cost();
    take_away(shadow_options_.most_samples, bursts_->samples());
    bursts_.reset();
}

void ShadowSampling::wind_up(const std::string& reason) {
    auto& without = place_.without_replicas;
    if (bursts_) {
        bursts_->wind_up(reason);
        without.time += Clock::now() - bursts_began_;
    } else if (without.time > Seconds{0}) {
        without.has_ended = true;
    }
    shadows_->wind_up(reason);
}

Cost ShadowSampling::cost() const {
    auto cost = shadows_->cost();
    cost += cost_of_bursts_;
    if (bursts_) cost += bursts_->cost();
    return cost;
}

std::vector<std::string> ShadowSampling::warnings() const {
    const auto& without = place_.without_replicas;
    if (without.time == Seconds{0}) return {};
    std::vector<std::string> warnings{
        without.has_ended
            ? fmt::format("no replicas for {:.0f} s ({}): then it was sampled in mode burst",
                          without.time.count(), without.why)
            : fmt::format("no replicas of this program ({}): it was sampled in mode burst",
                          without.why)};
    if (advises_latencies_)
        warnings.push_back("bursts know no latencies: ask for these alone, -p latency");
    return warnings;
}

}  // namespace shadowprof::sampling
