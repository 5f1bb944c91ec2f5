#include "sampling/modes/shadows.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "proc/processors.h"
#include "sampling/schedule/choose_thread.h"

namespace shadowprof::sampling {

namespace {

// What replicas do to the target is looked at so often while they live, and afterwards: what they
// left behind comes to light then.
constexpr std::chrono::milliseconds between_looks{5}, between_later_looks{100};
// At the end.
constexpr std::chrono::milliseconds await_first_sample{3000}, await_last_samples{200};
// Shorter samples than the shortest are the business of bursts, which go on after any system call.
constexpr std::uint64_t shortest_length = 80'000;
// Replicas that were of no use, one after the other, before we give up: what makes all processors
// busy may pass, unless it is there from the beginning.
constexpr unsigned most_failures = 4, most_starved = 2, most_starved_at_first = 1;
// What replicas cost is known after some. Where the budget lets there be fewer than two a second,
// bursts tell more; and where they have become so dear, as memory grew, that none could be for so
// long.
constexpr std::uint64_t enough_to_know = 3;
constexpr Seconds longest_wait{0.5}, longest_debt{1.0};
// Samples are longer in proportion where there are fewer of them than that, up to this length.
constexpr Seconds usual_wait{0.025};
constexpr double longest_length = 640e6;  // 64 ms (length_of_next)
// Instructions that a processor seldom executes more of; 16 were seen.
constexpr double per_nanosecond = 10, most_of_expected = 3;
// Of the program's for each nanosecond of a sample's that counts once.
constexpr Seconds unit_of_weight{5e-9};
// A program that writes all over its memory pays for each page while replicas only wait.
constexpr Seconds most_for_settling{2e-3};
// … and while they compute: no sample takes more than the budget has in so much time. One that
// began as a program filled 512 MB at random took 400 ms from it.
constexpr Seconds most_time_of_budget{2};
// Of the time, for as many replicas as there may be at once, …
constexpr double most_part_alive = 0.5;
// … and no more than costs so much of the budget, where computing beside the program takes
// something from it; what is digested costs as much again, or more.
constexpr double part_of_budget = 0.25;
// Programs execute that much of what a processor executes at most.
constexpr double usual_part_of_most = 0.4;

}  // namespace

Shadows::Shadows(SamplerContext place)
    : StopSampler(std::move(place)),
      watch_(place_.tracer.pid()),
      copies_(place_.tracer.pid()),
      length_(shortest_length, place_.options.sample_size) {
    const auto processors = proc::processors_for(place_.tracer.pid());
    if (place_.options.load)
        most_at_once_ =
            static_cast<std::size_t>(std::max(1.0, std::ceil(*place_.options.load * 2)));
    else if (processors >= 2)
        most_at_once_ = static_cast<std::size_t>(processors) - 1;  // one is the program's
    else
        impossible_ = {"there is only one processor for it"};
}

Shadows::~Shadows() = default;

Clock::time_point Shadows::next_birth() const {
    if (impossible_) return Clock::time_point::max();
    return std::max(StopSampler::next_tick(), paused_until_);
}

Clock::time_point Shadows::next_tick() const {
    return std::min(next_birth(), next_look_);
}

void Shadows::tick() {
    const auto now = Clock::now();
    if (now >= next_look_) look_after_replicas();
    if (now >= next_birth()) StopSampler::tick();
}

// The area, and the replicas that were born in it, belong to the program that was.
bool Shadows::take(const ptrace::Event& event) {
    if (event.kind == ptrace::EventKind::exec) {
        replicas_.reset();
        watch_ = FileTableWatch{place_.tracer.pid()};
        copies_.memory_is_new();
    }
    return StopSampler::take(event);
}

void Shadows::pause(Clock::time_point until) {
    paused_until_ = until;
    impossible_.reset();
    are_too_dear_ = is_earning_ = false;
    failures_ = refusals_ = 0;
    forget_asked();
}

// The time until now was the bursts', not one in which there could be no sample.
bool Shadows::may_resume() {
    must_earn_first();
    is_earning_ = false;
    return !impossible_;
}

bool Shadows::prepare() {
    look_after_replicas();
    if (impossible_ || is_full(Clock::now())) return false;
    return !must_earn_first();
}

bool Shadows::is_full(Clock::time_point now) const {
    if (!replicas_) return false;
    const Seconds elapsed = now - began_;
    const auto& load = place_.options.load;
    return alive_ >= replicas_->most_at_once() ||
           (load && alive_seconds_ >= *load * elapsed.count());
}

void Shadows::has_asked(const ptrace::Thread& thread) {
    if (fork_site_) fork_site_->look_ahead(thread);
}

void Shadows::begin(ptrace::Thread& thread, const ptrace::Registers&) {
    auto stopped = Clock::now();
    if (!replicas_) {
        const bool is_found = can_have_replicas(thread);
        // Once; it does not make samples dearer.
        pay_once(Clock::now() - stopped);
        // Others that had been asked have been let go on meanwhile.
        forget_asked();
        stopped = Clock::now();
        if (!is_found || impossible_) {
            thread.resume();
            return;
        }
    }
    watch_.note();
    const auto& obstacle = watch_.obstacle();
    auto birth = obstacle ? std::nullopt : fork_site_->fork(thread);
    if (!birth) {
        thread.resume();
        finished(Clock::now() - stopped);
        if (obstacle) {
            impossible_ = obstacle;
        } else {
            is_refused(fork_site_->obstacle());
        }
        return;
    }
    refusals_ = 0;
    const auto held = Clock::now() - stopped;
    ++forks_;
    auto at_birth = watch_.look(*fork_site_, *birth);
    fork_site_->prepare();
    const auto length = length_of_next();
    slowness_.asked_for(Seconds{length.nanoseconds * 1e-9});
    auto start = next_sample();
    const auto time = stands_for() + std::exchange(full_, {});
    start.weight_of_counts = weight_of(length, time);
    replicas_->expect(std::move(*birth), std::move(at_birth),
                      {std::move(start), length, time, place_.random.fork()});
    finished(held);
    look_after_replicas();
    copies_since_birth_ = Seconds{0};
}

// By default all samples cover the same time of the program's, so that they are of its instructions
// in proportion (native_time.h).
emu::translator::TranslatedReplica::Length Shadows::length_of_next() const {
    if (!place_.options.may_be_shorter) return {place_.options.sample_size, 0};
    auto wanted = static_cast<double>(length_.next());
    // The first would be over, by time, before its code is translated and its caches are warm; and
    // where the program soon makes a call that ends it, it should have shown something until then.
    // Not where latencies are wanted: one by instructions, in code that waits, outweighs all
    // others.
    if (forks_ <= 1 && !place_.options.insists_on_latencies)
        return {static_cast<std::uint64_t>(usual_part_of_most * wanted), 0};
    // Where replicas are dear they are few: then each may as well show more, and stretches of the
    // program's time have the same weight, however many samples there are in them. Unless they take
    // so long themselves that there would be fewer for that.
    const bool would_end_early = length_.next() < place_.options.sample_size;
    if (!would_end_early) {
        const Seconds affordable = affordable_alive() * mean_wait() / slowness_.lately();
        const auto longest = std::min(longest_length, affordable.count() * 1e9 * per_nanosecond);
        wanted = std::max(wanted, std::min(mean_wait() / usual_wait * wanted, longest));
    }
    return {static_cast<std::uint64_t>(most_of_expected * wanted), wanted / per_nanosecond};
}

// How many replicas there may be at a time, on average.
double Shadows::affordable_alive() const {
    const auto in_budget = part_of_budget * place_.options.overhead;
    const auto each_takes = prices().taken_beside().most;
    const auto most = most_part_alive * static_cast<double>(most_at_once_);
    return in_budget < most * each_takes ? in_budget / each_takes : most;
}

// What is executed in a sample stands for the program's time from the last one to this: which took,
// on average, as long as is waited, and as long as there could be none because others lived.
std::uint32_t Shadows::weight_of(const emu::translator::TranslatedReplica::Length& length,
                                 Seconds time) {
    constexpr double most = 1e6;
    if (!place_.options.may_be_shorter) return 1;
    const auto nanoseconds = length.nanoseconds > 0 ? length.nanoseconds
                                                    : static_cast<double>(length.instructions) /
                                                          (usual_part_of_most * per_nanosecond);
    return whole(std::clamp(time / unit_of_weight / nanoseconds, 1.0, most));
}

bool Shadows::can_have_replicas(ptrace::Thread& thread) {
    if (!fork_site_ && !found(thread)) {
        if (!why_no_nursery().empty()) impossible_ = {why_no_nursery()};
        return false;
    }
    replicas_ = std::make_unique<Replicas>(place_, *fork_site_, most_at_once_);
    if (replicas_->most_at_once() == 0) impossible_ = {"there can be no more threads here"};
    return true;
}

void Shadows::is_refused(const std::optional<inject::Obstacle>& obstacle) {
    refusals_ = obstacle ? refusals_ + 1 : 0;
    if (refusals_ >= most_failures) impossible_ = obstacle;
}

void Shadows::look_after_replicas() {
    const auto now = Clock::now();
    count_living(now);
    pay_for_copies();
    if (replicas_) {
        replicas_->end_overdue();
        for (const auto& outcome : replicas_->outcomes()) learn_from(outcome, now);
    }
    give_up_what_does_not_pay();
    next_look_ = alive_ > 0   ? now + between_looks
                 : forks_ > 0 ? now + between_later_looks
                              : Clock::time_point::max();
}

void Shadows::count_living(Clock::time_point now) {
    const Seconds passed = now - std::exchange(counted_until_, now);
    if (is_earning_ || is_full(now)) full_ += passed;
    alive_seconds_ += static_cast<double>(alive_) * passed.count();
    slowness_.lived(static_cast<double>(alive_) * passed);
    alive_ = replicas_ ? replicas_->alive() : 0;
}

void Shadows::pay_for_copies() {
    const auto copies = copies_.price_so_far(alive_);
    pay(copies);
    copies_since_birth_ += copies;
    if (!replicas_) return;
    if (copies_since_birth_ > most_for_settling) replicas_->settle_no_longer();
    if (copies_since_birth_ > place_.options.overhead * most_time_of_budget)
        replicas_->end_living("cost limit");
}

void Shadows::learn_from(const Replicas::Outcome& outcome, Clock::time_point now) {
    if (outcome.end == Replicas::Outcome::End::in_time) length_.ended_in_time();
    if (outcome.end == Replicas::Outcome::End::early) length_.ended_early();
    const bool failed = !outcome.was_born || outcome.lacks_memory || outcome.starved;
    failures_ = failed && now >= paused_until_ ? failures_ + 1 : 0;
    const auto most = !outcome.starved    ? most_failures
                      : instructions_ > 0 ? most_starved
                                          : most_starved_at_first;
    replicas_computed_ += outcome.computed;
    if (outcome.instructions > 0) {
        const auto price = prices().of_replica(outcome.computed);
        pay(price);
        paid_for_computing_ += price.most;
    }
    instructions_ += outcome.instructions;
    weighted_instructions_ += outcome.weighted_instructions;
    stood_for_ += outcome.stood_for;
    if (failures_ < most) return;
    is_biased_ |= outcome.lacks_memory;
    impossible_ = {outcome.lacks_memory
                       ? "the program keeps memory from its children, MADV_DONTFORK"
                   : outcome.starved ? Replicas::no_processor
                                     : outcome.reason,
                   outcome.starved && !outcome.lacks_memory};
}

bool Shadows::is_our_choice() const {
    const auto& options = place_.options;
    return options.may_be_shorter && !options.load && !options.period &&
           !options.insists_on_latencies;
}

// A program that has come to much memory since the last birth, or that we come late to, may be
// about to write all over it: that would be known only when it has paid.
bool Shadows::must_earn_first() {
    if (!is_our_choice()) return false;
    const auto wait = wait_before_risk(copies_.risk_of_birth());
    is_earning_ = wait > Seconds{0};
    if (wait > longest_debt) {
        are_too_dear_ = true;
        impossible_ = {"forking it may cost more than the budget has so far", true};
    }
    return is_earning_;
}

void Shadows::give_up_what_does_not_pay() {
    if (length_.is_too_long() && place_.options.may_be_shorter) {
        is_biased_ = true;
        impossible_ = {"calls that replicas cannot make follow each other too closely"};
    }
    if (forks_ == 0) return;
    // What they compute will cost less: they become shorter (affordable_alive).
    const auto for_computing =
        paid_for_computing_ / (static_cast<double>(forks_) * place_.options.overhead);
    const auto wait = affordable_wait() - for_computing, debt = mean_wait() - for_computing;
    const bool is_dear = wait > longest_wait || debt > longest_debt;
    // Nobody waits for a third where the first has such a debt.
    const bool is_known = forks_ >= enough_to_know || debt > 2 * longest_debt;
    if (is_our_choice() && is_known && is_dear && !impossible_) {
        are_too_dear_ = true;
        impossible_ = {"forking it, or tracing it at all, costs too much"};
    }
}

std::optional<double> Shadows::instructions_a_second() const {
    if (weighted_instructions_ > 0)
        return static_cast<double>(weighted_instructions_) / stood_for_.count();
    if ((alive_ > 0 || may_be_possible_later()) && place_.options.may_be_shorter)
        return usual_part_of_most * per_nanosecond / unit_of_weight.count();
    return std::nullopt;
}

void Shadows::wind_up(const std::string& reason) {
    if (replicas_) {
        if (!place_.tracer.alive()) await_samples();
        look_after_replicas();
        replicas_->end_all(reason);
    }
    replicas_.reset();
    leave_no_trace();
}

// The program is over, and they are of what it did at last; or, if it ran only briefly, all there
// is.
void Shadows::await_samples() {
    const auto ended = Clock::now();
    replicas_->hurry();
    while (replicas_->alive() > 0) {
        const auto longest = instructions_ == 0 ? await_first_sample : await_last_samples;
        if (Clock::now() > ended + longest) return;
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
        look_after_replicas();
    }
}

Cost Shadows::cost() const {
    auto cost = StopSampler::cost();
    cost.forks = forks_;
    cost.extra_faults = copies_.extra_faults();
    cost.extra_cpu = replicas_computed_;
    return cost;
}

}  // namespace shadowprof::sampling
