#include "sampling/schedule/stop_sampler.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "emu/translator/replica_cache.h"
#include "inject/rest_of_call.h"
#include "machine/passing_stop.h"
#include "ptrace/interrupted_calls.h"
#include "sampling/schedule/choose_thread.h"

namespace shadowprof::sampling {

namespace {

// For the fork site to be taken out, and before that for a thread that runs, or for the rest of a
// call.
constexpr std::chrono::milliseconds await_removal{20'000}, await_running{100}, await_rest{5};

Clock::time_point after(Clock::time_point then, Seconds wait) {
    return then + std::chrono::duration_cast<Clock::duration>(wait);
}

bool comes_from_kernel(const ptrace::Thread& thread, const ptrace::Registers& registers) {
    return registers.in_system_call() ||
           ptrace::is_system_call_at(thread.tid(), registers.rip() - ptrace::system_call_length);
}

}  // namespace

StopSampler::StopSampler(SamplerContext place)
    : place_(std::move(place)),
      price_(place_.tracer.pid(), place_.options.mode != Mode::shadow),
      budget_(place_.options.overhead, place_.options.period, place_.random.fork()),
      wait_(budget_.draw(true)) {}

// What the last sample costs comes to light while the next is being waited for: so when that is
// due is asked anew each time.
Clock::time_point StopSampler::next_tick() const {
    if (has_enough() && !in_progress()) return Clock::time_point::max();
    const auto* const given = std::get_if<Seconds>(&wait_);
    const Seconds wait =
        given ? *given : std::get<Budget::Draw>(wait_).wait(time_between_samples());
    return after(scheduled_, wait);
}

void StopSampler::tick() {
    if (in_progress()) {
        overdue();
        if (in_progress()) schedule(patience);
        return;
    }
    if (has_enough()) return;
    if (!is_prepared_)
        get_ready();
    else
        ask();
}

void StopSampler::get_ready() {
    waited_ = Clock::now() - scheduled_;
    auto* const thread = choose_thread(place_.tracer, place_.random);
    chosen_ = thread ? thread->tid() : 0;
    missed_ = 0;
    is_prepared_ = may_begin();
    if (!is_prepared_) {
        schedule_next();
        return;
    }
    price_.interrupting();
    aim();
}

void StopSampler::aim() {
    if (const auto stat = stats_.of(place_.tracer.pid(), chosen_))
        preemptors_[0].send(stat->processor, after(Clock::now(), rest + our_wake_up));
    schedule(rest);
}

// Whether it runs must be asked at the very moment: of threads that also ran some time before, none
// has just been woken.
void StopSampler::ask() {
    const auto began = Clock::now();
    auto* preemptor = &preemptors_[0];
    preemptor->await();
    auto running = running_thread();
    const auto displaced_since = [&] {
        return running.processor ? preemptor->displaced_since(*running.processor, began)
                                 : std::nullopt;
    };
    auto displaced = displaced_since();
    if (running.thread && !displaced) {
        // It has moved to another processor, or another was found.
        preemptor->release();
        preemptor = &preemptors_[1];
        chosen_ = running.thread->tid();
        if (running.processor) preemptor->send(*running.processor, Clock::now());
        preemptor->await();
        running = running_thread();
        displaced = displaced_since();
    }
    if (running.thread && !displaced && ++missed_ < most_missed) {
        preemptor->release();
        aim();
        return;
    }
    is_prepared_ = false;
    schedule_next();
    auto* const thread = running.thread;
    const auto now = Clock::now();
    const bool asked =
        thread && !asked_.contains(thread) && is_free(*thread) && thread->interrupt();
    if (asked) asked_[thread] = {now, now - displaced.value_or(now)};
    preemptor->release();
    if (asked) has_asked(*thread);
}

// The one that was chosen, unless it has gone to sleep meanwhile. Looked at once: while we look it
// is kept from its processor.
StopSampler::Running StopSampler::running_thread() {
    const auto processor_of = [&](pid_t tid) -> std::optional<int> {
        const auto stat = stats_.of(place_.tracer.pid(), tid);
        return stat && stat->state == 'R' ? std::optional{stat->processor} : std::nullopt;
    };
    auto* const thread = place_.tracer.thread(chosen_);
    if (thread && !thread->stopped())
        if (const auto processor = processor_of(chosen_)) return {thread, processor};
    auto* const other = choose_running_thread(place_.tracer, place_.random);
    return {other, other ? processor_of(other->tid()) : std::nullopt};
}

// A burst that had to wait for the profilers would let its thread wait as well.
bool StopSampler::may_begin() {
    return asked_.size() < most_asked && !place_.digester.is_behind() && prepare();
}

bool StopSampler::take(const ptrace::Event& event) {
    if (!event.thread) return false;
    if (event.kind == ptrace::EventKind::exec) {
        asked_.clear();  // all others are gone
        fork_site_.reset();
        why_no_nursery_.clear();
    }
    if (in_progress() && take_own(event)) return true;
    if (const auto asked = asked_.find(event.thread); asked != asked_.end()) {
        price_.stopped(asked->second.when, asked->second.displaced);
        asked_.erase(asked);
        if (event.kind == ptrace::EventKind::interrupted && !in_progress() && !has_enough()) {
            use_stop(*event.thread, Clock::now());
            return true;
        }
    }
    if (event.kind != ptrace::EventKind::thread_gone) {
        auto price = price_of_stop_now();
        // Who has started it has stopped, too.
        if (event.kind == ptrace::EventKind::thread_started) price += price_of_stop_now();
        cost_.price += price;
        budget_.spent_besides(price);
    }
    return stops_again_to_finish(event);
}

// Whoever asked for the stop, it may have broken off a call; and so may a signal that the program
// ignores. A thread that is about to be given one does nothing else: it does that first.
bool StopSampler::stops_again_to_finish(const ptrace::Event& event) {
    const bool has_signal = event.kind == ptrace::EventKind::signal;
    if (!has_signal && event.kind != ptrace::EventKind::interrupted) return false;
    auto& thread = *event.thread;
    const auto undone = inject::rest_of_call(place_.tracer.pid(), thread);
    if (!undone || make_rest(thread, *undone)) return false;
    return has_signal && why_no_nursery_.empty() && thread.stop_again(event.signal);
}

Seconds StopSampler::price_of_stop_now() {
    const auto now = Clock::now();
    return machine::price_of_passing_stop(now - std::exchange(passed_, now));
}

bool StopSampler::has_enough() const {
    const auto most = place_.options.most_samples;
    return most && samples_ >= *most;
}

// A thread that is stopped on its way out of a system call, or before the first instruction behind
// it, spent its time in the kernel, which it leaves with interrupts disabled, and not in the code
// behind the call: no sample begins there.
void StopSampler::use_stop(ptrace::Thread& thread, Clock::time_point stopped) {
    place_.tracer.repair_interrupted_call(thread);
    const auto registers = thread.registers();
    if (registers && registers->is_64bit() && !comes_from_kernel(thread, *registers)) {
        schedule(patience);
        begin(thread, *registers);
    } else {
        finish_call(thread);
        thread.resume();
        finished(Clock::now() - stopped);
    }
}

bool StopSampler::found(ptrace::Thread& thread) {
    if (!why_no_nursery_.empty()) return false;
    fork_site_ = inject::ForkSite::create(
        place_.tracer, thread, emu::translator::ReplicaCache::file_size, why_no_nursery_);
    return fork_site_ != nullptr;
}

bool StopSampler::finish_call(ptrace::Thread& thread) {
    const auto undone = inject::rest_of_call(place_.tracer.pid(), thread);
    return undone && make_rest(thread, *undone);
}

bool StopSampler::make_rest(ptrace::Thread& thread, const inject::RestOfCall& undone) {
    return (fork_site_ || found(thread)) && fork_site_->finish_call(thread, undone);
}

// Nobody is left behind with a call that was broken off. Then the area is taken out again by the
// program itself: by a thread that runs, or, if none does for a while, by one that does not mind
// being woken.
void StopSampler::leave_no_trace() {
    auto& tracer = place_.tracer;
    const auto began = Clock::now();
    auto ask_from = began;
    for (auto now = began; tracer.alive() && now < began + await_removal; now = Clock::now()) {
        if (!tracer.is_anyone_asked() && now >= ask_from) {
            if (!fork_site_) return;
            auto* thread = choose_running_thread(tracer, place_.random);
            if (!thread && now > began + await_running) thread = choose_thread_at_rest(tracer);
            if (thread) thread->interrupt();
        }
        const auto event = tracer.wait(Clock::now() + std::chrono::milliseconds{2});
        if (!event) continue;
        // That is the session's to hear, and of the program that was there is nothing left.
        if (event->kind == ptrace::EventKind::process_gone ||
            event->kind == ptrace::EventKind::exec) {
            tracer.give_back(*event);
            break;
        }
        const bool is_finishing = event->thread && finish_call(*event->thread);
        if (is_finishing) ask_from = Clock::now() + await_rest;
        if (event->kind != ptrace::EventKind::interrupted || is_finishing || !fork_site_ ||
            tracer.is_anyone_asked()) {
            tracer.pass_on(*event);
            continue;
        }
        auto& thread = *event->thread;
        tracer.repair_interrupted_call(thread);
        const bool stays = !fork_site_->may_be_removed_by(thread);
        const bool done = !stays && fork_site_->remove(tracer, thread);
        thread.resume();
        if (done || stays) break;
    }
    fork_site_.reset();
}

trace::TraceStart StopSampler::next_sample() {
    trace::TraceStart start;
    start.trace = place_.numbers.next_trace();
    start.sample = place_.numbers.next_sample();
    start.weight = weight_of_next();
    ++samples_;
    return start;
}

void StopSampler::finished(Seconds held) {
    const auto price = price_.of_stop(held);
    ++cost_.stops;
    cost_.stop_time += held;
    cost_.price += price.likely;
    budget_.spent_on_sample(price.most);
    schedule_next();
}

void StopSampler::held_again(Seconds held) {
    ++cost_.stops;
    cost_.stop_time += held;
    pay(price_of_stop_now() + held);
}

void StopSampler::pay(OverheadModel::Estimate<Seconds> price) {
    cost_.price += price.likely;
    budget_.spent_on_last_sample(price.most);
}

void StopSampler::pay_once(Seconds held) {
    cost_.stop_time += held;
    cost_.price += held;
}

// Where more samples would hardly tell more, they may be fewer, until the program behaves anew.
double StopSampler::samples_in_one() const {
    constexpr double good = 0.01, most = 10;
    const double known = good / place_.precision;
    return std::clamp(known * known, 1.0, most);
}

Seconds StopSampler::time_between_samples() const {
    return budget_.mean_wait() * samples_in_one();
}

std::uint32_t StopSampler::whole(double weight) {
    const double below = std::floor(weight);
    return static_cast<std::uint32_t>(below) + (place_.random.chance(weight - below) ? 1 : 0);
}

void StopSampler::schedule(Wait wait) {
    scheduled_ = Clock::now();
    wait_ = wait;
}

}  // namespace shadowprof::sampling
