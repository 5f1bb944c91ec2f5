#include "sampling/kinds/replica_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "proc/processors.h"
#include "sampling/kinds/kind_parts.h"
#include "sampling/kinds/other_threads.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

// 0: there is no processor for any.
std::size_t most_at_once(const SamplerContext& place) {
    if (const auto& load = place.options.load)
        return static_cast<std::size_t>(std::max(1.0, std::ceil(*load * 2)));
    const auto processors = static_cast<std::size_t>(proc::processors_for(place.tracer.pid()));
    return processors >= 2 ? processors - 1 : 0;  // one is the program's
}

}  // namespace

ReplicaSamples::ReplicaSamples(SamplerContext place, std::shared_ptr<Pacer> pacer, Input input)
    : SampleKind(std::move(pacer)),
      place_(std::move(place)),
      most_at_once_(most_at_once(place_)),
      watch_(place_.tracer.pid()),
      sizing_(place_.options, most_at_once_),
      recorder_(place_.tracer),
      may_be_told_(input == Input::is_told) {
    if (most_at_once_ == 0) give_up({"there is only one processor for it"});
}

ReplicaSamples::~ReplicaSamples() = default;

// The area, and the replicas that were born in it, belong to the program that was.
void ReplicaSamples::program_is_new() {
    recorder_.end();
    replicas_.reset();
    watch_ = FileTableWatch{place_.tracer.pid()};
    place_.host.memory_is_new();
}

void ReplicaSamples::pause(Clock::time_point until) {
    SampleKind::pause(until);
    paused_until_ = until;
    failures_ = refusals_ = 0;
}

bool ReplicaSamples::prepare() {
    look_after();
    return !obstacle() && !is_full(Clock::now());
}

bool ReplicaSamples::is_full(Clock::time_point now) const {
    if (!replicas_) return false;
    const Seconds elapsed = now - began_;
    const auto& load = place_.options.load;
    if (alive_ > 0 && has_all_threads() &&
        (alive_ + 1) * place_.tracer.threads().size() > tuning::most_threads_in_replicas)
        return true;
    return alive_ >= replicas_->most_at_once() ||
           (load && alive_seconds_ >= *load * elapsed.count());
}

// More may be more than the program could start then.
bool ReplicaSamples::has_all_threads() const {
    const auto threads = place_.tracer.threads().size();
    return place_.options.replica_threads && threads > 1 &&
           threads <= tuning::most_threads_in_replicas;
}

void ReplicaSamples::has_asked(const ptrace::Thread& thread) {
    if (auto* const site = place_.foothold.fork_site()) site->look_ahead(thread);
}

void ReplicaSamples::begin(ptrace::Thread& thread, const ptrace::Registers&) {
    auto stopped = Clock::now();
    if (!replicas_) {
        const bool can_have = can_have_replicas(thread);
        // Once; it does not make samples dearer.
        pacer().pay_once(Clock::now() - stopped);
        stopped = Clock::now();
        if (!can_have || obstacle()) {
            thread.resume();
            return;
        }
    }
    auto& site = *place_.foothold.fork_site();
    watch_.note();
    const auto& open_files = watch_.obstacle();
    OtherThreads others{place_};
    if (has_all_threads() && !open_files) others.stop(thread, site.place());
    const bool is_told = is_told_ && !has_all_threads();
    auto replica = open_files ? std::nullopt : site.fork(thread, is_told);
    if (!replica) {
        thread.resume();
        others.let_go();
        pacer().finished(Clock::now() - stopped);
        if (open_files)
            give_up(*open_files);
        else
            is_refused(site.obstacle());
        return;
    }
    refusals_ = 0;
    const auto held = Clock::now() - stopped;
    ++forks_;
    refused_ = 0;
    auto journal = is_told ? recorder_.begin(thread, site.place()) : nullptr;
    auto files = watch_.look(site, *replica);
    const bool is_of_one_moment = others.none() || has_forked(site, *replica);
    others.let_go();
    const Seconds others_held = others_computing(others) * (Clock::now() - stopped);
    site.prepare();
    const auto length = sizing_.next(pacer(), forks_ == 1);
    auto start = next_sample(place_, pacer(), thread);
    std::optional<std::vector<OtherThread>> company;
    if (has_all_threads() && is_of_one_moment) {
        company = others.take(start);
        threads_missing_ += others.missing();
        threads_taken_ += company->size();
    }
    replicas_->expect(
        std::move(*replica), std::move(files),
        {std::move(start), length, place_.random.fork(), std::move(company), std::move(journal)});
    pacer().finished(held + others_held);
    look_after();
    copies_since_fork_ = Seconds{0};
}

// How many of those that were stopped would have had a processor beside the one that forks.
std::size_t ReplicaSamples::others_computing(const OtherThreads& others) const {
    const auto processors = static_cast<std::size_t>(proc::processors_for(place_.tracer.pid()));
    return std::min(others.stopped_while_running(), std::max<std::size_t>(processors, 1) - 1);
}

// Memory is of one moment only if nobody writes to it until it is copied.
bool ReplicaSamples::has_forked(const inject::ForkSite& site,
                                const inject::PendingReplica& replica) {
    const auto given_up = after(Clock::now(), tuning::longest_fork_of_all);
    while (!site.has_returned(replica) && Clock::now() < given_up) std::this_thread::yield();
    return site.has_returned(replica);
}

bool ReplicaSamples::can_have_replicas(ptrace::Thread& thread) {
    auto& foothold = place_.foothold;
    if (!foothold.fork_site() && !foothold.gain(thread)) {
        if (!foothold.why_never().empty()) give_up({foothold.why_never()});
        return false;
    }
    replicas_ = std::make_unique<Replicas>(place_, *foothold.fork_site(), most_at_once_);
    if (replicas_->most_at_once() == 0) give_up({"there can be no more threads here"});
    return true;
}

void ReplicaSamples::is_refused(const std::optional<inject::Obstacle>& obstacle) {
    refusals_ = obstacle ? refusals_ + 1 : 0;
    if (refusals_ >= tuning::most_failures) give_up(*obstacle);
}

void ReplicaSamples::look_after() {
    const auto now = Clock::now();
    count_living(now);
    pay_for_copies();
    recorder_.end_overdue(now);
    if (replicas_) {
        replicas_->end_overdue();
        for (const auto& outcome : replicas_->outcomes()) learn_from(outcome, now);
    }
    if (sizing_.is_too_long() && place_.options.may_be_shorter) {
        is_biased_ = true;
        give_up({"calls that replicas cannot make follow each other too closely"});
    }
    next_look_ = alive_ > 0   ? now + tuning::between_looks_at_replicas
                 : forks_ > 0 ? now + tuning::between_later_looks
                              : Clock::time_point::max();
}

// As samples in place (InstantSamples::may_begin_behind_call).
bool ReplicaSamples::may_begin_behind_call() const {
    return is_told_ && (!calls_ || *calls_ >= tuning::calls_in_burst);
}

void ReplicaSamples::was_behind_call() {
    if (may_be_told_ && !calls_ && ++refused_ >= tuning::refused_until_tried) is_told_ = true;
}

// It costs two stops a call, so only where replicas would end otherwise.
void ReplicaSamples::learn_of_input(const Replicas::Outcome& outcome) {
    if (!outcome.was_born || !may_be_told_) return;
    if (!outcome.journal) {
        is_told_ = is_told_ || (outcome.end == Replicas::Outcome::End::early &&
                                outcome.reason.starts_with("system call "));
        return;
    }
    recorder_.learn_from(*outcome.journal);
    const auto passed = static_cast<double>(outcome.journal->passed());
    calls_ = calls_ ? *calls_ + (passed - *calls_) / tuning::replicas_remembered : passed;
    calls_told_ += outcome.journal->told();
    ++replicas_told_;
    told_in_vain_ = outcome.journal->told() > 0 ? 0 : told_in_vain_ + 1;
    if (told_in_vain_ >= tuning::told_in_vain) is_told_ = false;
}

// Each stop is paid for.
bool ReplicaSamples::take(const ptrace::Event& event) {
    if (!event.thread) return false;
    const auto began = Clock::now();
    if (!recorder_.take(event)) return false;
    const auto let_go = recorder_.let_go();
    const Seconds since_last = began - std::exchange(last_told_, let_go);
    const bool was_awaited = since_last < tuning::soon_told;
    pacer().held_again(let_go - began,
                       was_awaited ? std::optional{tuning::awaited_stop} : std::nullopt);
    return true;
}

void ReplicaSamples::count_living(Clock::time_point now) {
    const Seconds passed = now - std::exchange(counted_until_, now);
    alive_seconds_ += static_cast<double>(alive_) * passed.count();
    sizing_.lived(static_cast<double>(alive_) * passed);
    alive_ = replicas_ ? replicas_->alive() : 0;
}

void ReplicaSamples::pay_for_copies() {
    const auto copies = place_.host.replicas(alive_);
    pacer().pay(Cause::page_copies, copies);
    copies_since_fork_ += copies;
    if (!replicas_) return;
    if (copies_since_fork_ > tuning::most_for_settling) replicas_->settle_no_longer();
    if (copies_since_fork_ > place_.options.overhead.for_copies_of_one())
        replicas_->end_living("cost limit");
}

void ReplicaSamples::learn_from(const Replicas::Outcome& outcome, Clock::time_point now) {
    if (outcome.end == Replicas::Outcome::End::in_time) sizing_.ended_in_time();
    if (outcome.end == Replicas::Outcome::End::early) {
        sizing_.ended_early();
        ++ended_early_;
    }
    learn_of_input(outcome);
    const bool failed = !outcome.was_born || outcome.lacks_memory || outcome.starved;
    failures_ = failed && now >= paused_until_ ? failures_ + 1 : 0;
    const auto most = !outcome.starved    ? tuning::most_failures
                      : instructions_ > 0 ? tuning::most_starved
                                          : tuning::most_starved_at_first;
    computed_ += outcome.computed;
    if (outcome.instructions > 0) {
        const auto price = pacer().prices().of_replica(outcome.computed);
        pacer().pay(Cause::slower_code, price);
        paid_for_computing_ += price;
    }
    instructions_ += outcome.instructions;
    if (failures_ < most) return;
    is_biased_ |= outcome.lacks_memory;
    give_up({outcome.lacks_memory ? "the program keeps memory from its children, MADV_DONTFORK"
             : outcome.starved    ? Replicas::no_processor
                                  : outcome.reason,
             outcome.starved && !outcome.lacks_memory});
}

// What replicas compute will cost less: they become shorter (ReplicaSizing).
Seconds ReplicaSamples::passing_price() const {
    return forks_ == 0 ? Seconds{0} : paid_for_computing_ / static_cast<double>(forks_);
}

std::string ReplicaSamples::what_others_lack() const {
    return place_.code.plan().has(trace::Capture::latency)
               ? "bursts know no latencies: ask for these alone, -p latency"
               : "";
}

void ReplicaSamples::end(const std::string& reason) {
    recorder_.end();
    if (replicas_) {
        if (!place_.tracer.alive()) await_samples();
        look_after();
        replicas_->end_all(reason);
    }
    replicas_.reset();
}

// The program is over, and they are of what it did at last; or, if it ran only briefly, all there
// is.
void ReplicaSamples::await_samples() {
    const auto ended = Clock::now();
    replicas_->hurry();
    while (replicas_->alive() > 0) {
        const auto longest =
            instructions_ == 0 ? tuning::await_first_sample : tuning::await_last_samples;
        if (Clock::now() > ended + longest) return;
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
        look_after();
    }
}

std::string ReplicaSamples::account() const {
    if (threads_taken_ + threads_missing_ == 0) {
        if (calls_told_ == 0) return {};
        return fmt::format("replicas were told {:.1f} times on average what the original was told",
                           static_cast<double>(calls_told_) / static_cast<double>(replicas_told_));
    }
    const auto replicas = static_cast<double>(std::max<std::uint64_t>(forks_, 1));
    return fmt::format("replicas had {:.1f} other threads on average, and lacked {:.1f}",
                       static_cast<double>(threads_taken_) / replicas,
                       static_cast<double>(threads_missing_) / replicas);
}

Cost ReplicaSamples::cost() const {
    auto cost = SampleKind::cost();
    cost.forks = forks_;
    cost.extra_faults = place_.host.extra_faults();
    cost.extra_cpu = computed_;
    return cost;
}

}  // namespace shadowprof::sampling
