#include "sampling/kinds/best_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sampling/tuning.h"

namespace shadowprof::sampling {

BestSamples::BestSamples(std::shared_ptr<Pacer> pacer, std::unique_ptr<SampleKind> in_place,
                         std::unique_ptr<ReplicaSamples> replicas, Random random)
    : SampleKind(std::move(pacer)),
      instants_(std::move(in_place)),
      replicas_(std::move(replicas)),
      in_place_{.kind = instants_.get(), .worth = 1},
      by_replicas_{.kind = replicas_.get(), .worth = tuning::worth_of_replica},
      next_(&in_place_),
      random_(random) {}

// Whatever is paid meanwhile is that side's. What comes to light later, too, if its kind pays it.
template <typename Call>
void BestSamples::on_account_of(Side& side, const Call& call) {
    const auto before = pacer().cost().price;
    const auto samples_before = pacer().samples();
    call();
    const auto taken = pacer().samples() - samples_before;
    // To make room for samples is no sample's cost.
    if (side.taken == 0 && taken == 0) return;
    side.paid += pacer().cost().price - before;
    side.samples += taken;
    side.taken += taken;
}

bool BestSamples::replicas_are_better() const {
    const auto in_place = in_place_.price(), by_replicas = by_replicas_.price();
    if (!by_replicas || !in_place) return false;
    return *by_replicas / by_replicas_.worth < *in_place / in_place_.worth;
}

// The other one is taken so often that it costs a small part of the budget. The price of the first
// replica is unknown, and may be that of a hundred samples in place: so these come first.
void BestSamples::choose() {
    const bool may_fork = in_place_.taken >= instants_->enough_to_know() || instants_->obstacle();
    const auto can_be_taken = [&](const Side& side) {
        if (side.kind->obstacle() || (&side == &by_replicas_ && !may_fork)) return false;
        const auto risk = side.kind->risk_of_next();
        return risk == Seconds{0} || pacer().wait_before_risk(risk) <= Seconds{0};
    };
    auto& best = better();
    auto& other = &best == &in_place_ ? by_replicas_ : in_place_;
    const auto price = best.price(), price_of_other = other.price();
    const auto dearer = price && price_of_other ? *price_of_other / *price : 1.0;
    const bool tries_other = random_.chance(tuning::part_for_the_other / std::max(dearer, 1.0));
    next_ = tries_other || !can_be_taken(best) ? &other : &best;
    if (!can_be_taken(*next_)) next_ = &in_place_;
}

bool BestSamples::prepare() {
    // A replica that ends early has seen the code before a call and never that behind it.
    if (replicas_->ended_early() >= tuning::most_ended_early && !replicas_->obstacle())
        replicas_->give_up({"system calls end them too early"});
    if (instants_->obstacle() && replicas_->obstacle()) give_up(*instants_->obstacle());
    choose();
    bool is_ready = false;
    on_account_of(*next_, [&] { is_ready = next().prepare(); });
    for (auto* const side : {&in_place_, &by_replicas_}) {
        if (side->samples < tuning::samples_remembered) continue;
        side->samples /= 2;
        side->paid /= 2;
    }
    return is_ready;
}

bool BestSamples::may_begin_in(const ptrace::Thread& thread) const {
    return instants_->may_begin_in(thread) && replicas_->may_begin_in(thread);
}

void BestSamples::begin(ptrace::Thread& thread, const ptrace::Registers& registers) {
    on_account_of(*next_, [&] { next().begin(thread, registers); });
}

// A replica has none.
void BestSamples::join(ptrace::Thread& thread, const ptrace::Registers& registers) {
    on_account_of(in_place_, [&] { instants_->join(thread, registers); });
}

bool BestSamples::take(const ptrace::Event& event) {
    if (instants_->take(event)) return true;
    bool is_taken = false;
    on_account_of(by_replicas_, [&] { is_taken = replicas_->take(event); });
    return is_taken;
}

void BestSamples::program_is_new() {
    instants_->program_is_new();
    replicas_->program_is_new();
}

Clock::time_point BestSamples::next_look() const {
    return std::min(instants_->next_look(), replicas_->next_look());
}

void BestSamples::look_after() {
    const auto now = Clock::now();
    for (auto* const side : {&in_place_, &by_replicas_})
        if (now >= side->kind->next_look()) on_account_of(*side, [&] { side->kind->look_after(); });
}

bool BestSamples::has_open_samples() const {
    return instants_->has_open_samples() || replicas_->has_open_samples();
}

void BestSamples::end(const std::string& reason) {
    replicas_->end(reason);
    instants_->end(reason);
}

std::string BestSamples::account() const {
    const auto text = [](const Side& side, const char* how) {
        const auto price = side.price();
        if (side.taken == 0 || !price) return fmt::format("{} {}", side.taken, how);
        return fmt::format("{} {} ({:.2f} ms each)", side.taken, how, price->count() * 1e3);
    };
    auto account = fmt::format("by what tells most for its cost: {}, {}",
                               text(in_place_, "in place"), text(by_replicas_, "by replicas"));
    if (const auto in_place = instants_->account(); !in_place.empty()) account += "; " + in_place;
    if (const auto& why = replicas_->obstacle())
        account += fmt::format("; no more replicas: {}", why->why);
    return account;
}

}  // namespace shadowprof::sampling
