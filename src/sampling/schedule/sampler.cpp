#include "sampling/schedule/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "sampling/tuning.h"

namespace shadowprof::sampling {

Sampler::Sampler(Collaborators with, std::unique_ptr<SampleKind> preferred, MakeKind make_stand_in)
    : with_(std::move(with)),
      stopper_(*with_.threads, with_.random.fork()),
      preferred_(std::move(preferred)),
      make_stand_in_(std::move(make_stand_in)),
      began_(with_.now()),
      stand_in_began_(began_),
      pause_(tuning::shortest_pause) {}

Sampler::~Sampler() = default;

// --- when and whom -------------------------------------------------------------------------------

std::uint64_t Sampler::samples() const {
    const auto by_stand_in = stand_in_ ? stand_in_->pacer().samples() : 0;
    return preferred_->pacer().samples() + samples_of_stand_ins_ + by_stand_in - forgotten_;
}

bool Sampler::has_enough() const {
    const auto most = with_.options.most_samples;
    return most && samples() >= *most;
}

bool Sampler::is_complete() const {
    return has_enough() && !kind().has_open_samples();
}

Clock::time_point Sampler::next_sample() const {
    if (has_enough() && !kind().is_holding()) return Clock::time_point::max();
    if (kind().obstacle())  // there will be another kind at once, or none
        return make_stand_in_ ? Clock::time_point::min() : Clock::time_point::max();
    return kind().pacer().due();
}

Clock::time_point Sampler::next_tick() const {
    auto next = std::min(next_sample(), preferred_->next_look());
    if (stand_in_) next = std::min({next, stand_in_->next_look(), again_at_});
    // A larger part of the family's budget comes unannounced.
    if (const auto& allotment = with_.options.allotment; allotment && allotment->part() < 1)
        next = std::min(next, after(with_.now(), tuning::between_looks_at_processes));
    return next;
}

// When there are to be no more samples of the preferred kind, those that live are looked after:
// they have been paid for, and of a brief program they may be all that is seen. And what all of
// them left behind is paid for.
void Sampler::tick() {
    const auto now = with_.now();
    charge_others();
    if (now >= preferred_->next_look()) {
        preferred_->look_after();
        give_up_what_does_not_pay();
    }
    if (stand_in_ && now >= stand_in_->next_look()) stand_in_->look_after();
    if (!kind().obstacle() && now >= next_sample()) act();
    if (stand_in_) charge_stand_in();
    change_kind();
}

void Sampler::act() {
    if (kind().is_holding()) {
        kind().is_overdue();
        if (kind().is_holding()) kind().pacer().wait(tuning::patience);
        return;
    }
    const auto computed = [this] { return kind().pacer().prices().computed_here(); };
    const auto before = computed();
    bool nobody_runs = false;
    if (!is_prepared_)
        get_ready();
    else
        nobody_runs = !look_and_ask();
    attempt_took_ += computed() - before;
    if (is_prepared_) return;
    const auto took = std::exchange(attempt_took_, Seconds{0});
    if (nobody_runs) kind().pacer().attempted_in_vain(took);
}

// A sample that had to wait for the profilers would let its thread wait as well.
void Sampler::get_ready() {
    auto& pacer = kind().pacer();
    pacer.waited();
    stopper_.choose();
    is_prepared_ = stopper_.may_ask_another() && !with_.is_behind() && kind().prepare();
    if (!stand_in_) {
        give_up_what_does_not_pay();
        is_prepared_ = is_prepared_ && !kind().obstacle() && !must_earn_first();
    }
    if (!is_prepared_) {
        pacer.wait_for_next();
        return;
    }
    stopper_.aim();
    pacer.wait(ThreadStopper::rest());
}

// False: no thread runs.
bool Sampler::look_and_ask() {
    auto& pacer = kind().pacer();
    const auto attempt = stopper_.look();
    if (attempt.is_to_be_repeated) {
        stopper_.release();
        stopper_.aim();
        pacer.wait(ThreadStopper::rest());
        return true;
    }
    is_prepared_ = false;
    pacer.wait_for_next();
    auto* const thread = attempt.thread;
    const bool asked = thread && !stopper_.has_asked(*thread) && kind().may_begin_in(*thread) &&
                       stopper_.ask(attempt);
    stopper_.release();
    if (!asked) return thread != nullptr;
    kind().has_asked(*thread);
    may_be_joined_ = false;
    if (kind().lets_others_join()) ask_others();
    return true;
}

// Whoever stops first begins the sample, and the others join it.
void Sampler::ask_others() {
    auto left = with_.options.all_threads ? std::numeric_limits<int>::max() : tuning::most_company;
    for (auto* const other : with_.threads->all())
        if (left > 0 && !other->stopped() && !stopper_.has_asked(*other) &&
            kind().may_begin_in(*other) && with_.threads->is_running(*other)) {
            stopper_.ask({false, other, {}});
            --left;
        }
}

void Sampler::answer() {
    preferred_->answer();
    if (stand_in_) stand_in_->answer();
}

bool Sampler::take(const ptrace::Event& event) {
    if (!event.thread) return false;
    if (event.kind == ptrace::EventKind::exec) {
        stopper_.forget_asked();  // all others are gone
        preferred_->program_is_new();
        if (stand_in_) stand_in_->program_is_new();
        with_.threads->program_is_new();
    }
    const bool is_taken = take_or_count(event);
    change_kind();
    return is_taken;
}

bool Sampler::take_or_count(const ptrace::Event& event) {
    auto& pacer = kind().pacer();
    if (kind().take(event)) return true;
    if (const auto asked = stopper_.answer(event)) {
        pacer.prices().stopped(asked->when, asked->displaced);
        if (event.kind == ptrace::EventKind::interrupted && !kind().is_holding() &&
            (may_be_joined_ || !has_enough())) {
            use_stop(*event.thread);
            return true;
        }
    }
    // The one that has started a thread has stopped, too.
    const int stops = event.kind == ptrace::EventKind::thread_gone      ? 0
                      : event.kind == ptrace::EventKind::thread_started ? 2
                                                                        : 1;
    pacer.pay_for_passing_stops(stops);
    if (with_.threads->finishes_broken_call(event)) return true;
    const bool is_let_go = pacer.passing_stops_are_dear() && with_.threads->let_go_untraced(event);
    lets_go_ |= is_let_go;
    return is_let_go;
}

void Sampler::use_stop(ptrace::Thread& thread) {
    const auto stopped = with_.now();
    auto& pacer = kind().pacer();
    if (const auto registers =
            with_.threads->place_to_begin(thread, kind().may_begin_behind_call())) {
        if (std::exchange(may_be_joined_, kind().lets_others_join())) {
            kind().join(thread, *registers);
            return;
        }
        with_.begins(thread, *registers);
        pacer.wait(tuning::patience);
        kind().begin(thread, *registers);
        if (!stand_in_) give_up_what_does_not_pay();
    } else {
        const auto once = with_.threads->let_go(thread);
        kind().was_behind_call();
        pacer.pay_once(once);
        pacer.finished(with_.now() - stopped - once);
    }
}

void Sampler::wind_up(const std::string& reason) {
    with_.stand_for_rest(kind().pacer().rest());
    auto& without = with_.without_preferred;
    with_.threads->hold_all();
    if (stand_in_) {
        stand_in_->end(reason);
        without.time += with_.now() - stand_in_began_;
    } else if (without.time > Seconds{0}) {
        without.has_ended = true;
    }
    preferred_->end(reason);
    with_.threads->leave_no_trace();
}

Cost Sampler::cost() const {
    auto cost = preferred_->cost();
    cost += cost_of_stand_ins_;
    if (stand_in_) cost += stand_in_->cost();
    return cost;
}

// --- by which kind of sample ---------------------------------------------------------------------

// Otherwise samples are as long and as frequent as somebody said, whatever they cost.
bool Sampler::may_choose() const {
    const auto& options = with_.options;
    return make_stand_in_ && options.may_be_shorter && !options.load && !options.period &&
           !options.insists_on_latencies;
}

void Sampler::give_up_as_too_dear(std::string why, bool may_pass) {
    is_too_dear_ = true;
    preferred_->give_up({std::move(why), may_pass});
}

// A program that has come to much memory since the last sample, or that we come late to, may be
// about to write all over it: that would be known only when it has paid.
bool Sampler::must_earn_first() {
    if (!may_choose() || !preferred_->one_may_be_too_dear()) return false;
    auto& pacer = preferred_->pacer();
    const auto wait = pacer.wait_before_risk(preferred_->risk_of_next());
    if (pacer.own(wait) > tuning::longest_debt)
        give_up_as_too_dear("forking it may cost more than the budget has so far", true);
    return wait > Seconds{0};
}

// What samples cost is known after some; nobody waits for more of them where the first has a great
// debt.
void Sampler::give_up_what_does_not_pay() {
    auto& pacer = preferred_->pacer();
    if (!may_choose() || preferred_->obstacle() || pacer.samples() == 0) return;
    const auto passing = preferred_->passing_price() / with_.options.overhead.for_samples();
    const auto wait = pacer.own(pacer.affordable_wait()) - passing,
               debt = pacer.own(pacer.mean_wait()) - passing;
    // Where samples are cheap, a debt is paid back sooner than other kinds have shown anything.
    const auto debt_that_matters =
        preferred_->one_may_be_too_dear() ? tuning::longest_debt : Seconds::max();
    const bool is_dear = wait > tuning::longest_wait || debt > debt_that_matters;
    const bool is_known =
        pacer.samples() >= preferred_->enough_to_know() || debt > 2 * debt_that_matters;
    if (is_known && is_dear)
        give_up_as_too_dear(fmt::format("{} costs too much", preferred_->what_is_dear()), false);
}

void Sampler::change_kind() {
    if (!make_stand_in_) return;
    if (!stand_in_ && preferred_->obstacle()) begin_stand_in();
    if (!stand_in_ || with_.now() < again_at_) return;
    must_earn_first();
    if (preferred_->obstacle())
        pause_preferred();
    else
        end_stand_in();
}

void Sampler::pause_preferred() {
    with_.without_preferred.why = preferred_->obstacle()->why;
    again_at_ = after(with_.now(), pause_);
    pause_ = std::min(2 * pause_, tuning::longest_pause);
    preferred_->pause(again_at_);
    is_too_dear_ = false;
}

void Sampler::end_preferred() {
    with_.threads->hold_all();
    preferred_->end(fmt::format("the end of {}s", preferred_->name()));
    with_.threads->leave_no_trace();
}

void Sampler::begin_stand_in() {
    const auto now = with_.now();
    with_.without_preferred.why = preferred_->obstacle()->why;
    if (is_too_dear_) advice_ = preferred_->what_others_lack();
    const bool was_of_use = now - stand_in_began_ > 2 * tuning::longest_pause;
    stand_in_began_ = now;
    is_prepared_ = false;
    stopper_.forget_asked();
    if (preferred_->is_biased()) {
        // What living ones are about to show is to be forgotten, too.
        end_preferred();
        with_.forget();
        forgotten_ = samples();
    }
    if (preferred_->obstacle()->may_pass) {
        if (was_of_use) pause_ = tuning::shortest_pause;
        pause_preferred();
    } else if (!preferred_->has_open_samples()) {
        end_preferred();
    }
    stand_in_ = make_stand_in_();
    with_.without_preferred.stand_in = stand_in_->name();
    const Seconds elapsed = stand_in_began_ - began_;
    const auto left = with_.options.overhead.for_samples() * elapsed - cost_of_stand_ins_.price;
    charged_ = std::clamp(left, Seconds{0}, preferred_->cost().price);
    charge_stand_in();
}

// What the preferred kind has overdrawn, and what its living samples go on to cost.
void Sampler::charge_stand_in() {
    const auto price = preferred_->cost().price;
    stand_in_->pacer().others_cost(price - std::exchange(charged_, price));
}

void Sampler::charge_others() {
    const auto cost = with_.cost_of_others();
    kind().pacer().others_cost(cost - std::exchange(others_cost_, cost));
}

void Sampler::end_stand_in() {
    stand_in_->end(fmt::format("the end of {}s", stand_in_->name()));
    with_.without_preferred.time += with_.now() - stand_in_began_;
    with_.without_preferred.has_ended = true;
    again_at_ = Clock::time_point::max();
    cost_of_stand_ins_ += stand_in_->cost();
    samples_of_stand_ins_ += stand_in_->pacer().samples();
    stand_in_.reset();
    preferred_->pacer().takes_over();
    is_prepared_ = false;
    stopper_.forget_asked();
}

std::vector<std::string> Sampler::warnings() const {
    const auto& without = with_.without_preferred;
    std::vector<std::string> warnings;
    if (lets_go_)
        warnings.push_back(
            "the program's signals come too often to trace them all: between samples it was let go "
            "of");
    if (const auto why = with_.threads->why_not_held(); !why.empty())
        warnings.push_back("no samples could be taken any more: " + why);
    if (without.time == Seconds{0}) return warnings;
    const auto* const name = preferred_->name();
    warnings.push_back(without.has_ended
                           ? fmt::format("no {}s for {:.0f} s ({}): then it was sampled in mode {}",
                                         name, without.time.count(), without.why, without.stand_in)
                           : fmt::format("no {}s of this program ({}): it was sampled in mode {}",
                                         name, without.why, without.stand_in));
    if (!advice_.empty()) warnings.push_back(advice_);
    return warnings;
}

}  // namespace shadowprof::sampling
