#include "shadow/bursts.h"

#include <algorithm>

#include "shadow/choose_thread.h"

namespace shadowprof::shadow {

Bursts::Bursts(Workplace place)
    : place_(std::move(place)),
      price_(place_.options.mode != Mode::shadow),
      budget_(place_.options.overhead, place_.options.period, place_.random.fork()) {
    schedule(budget_.first_wait());
}

void Bursts::tick() {
    if (in_progress()) {
        overdue();
        if (in_progress()) schedule(patience);
        return;
    }
    if (has_enough()) {
        next_tick_ = ptrace::Clock::time_point::max();
        return;
    }
    schedule_next();
    if (asked_.size() >= most_asked) return;
    // A burst that had to wait for the profilers would let its thread wait as well.
    if (place_.digester.is_behind()) return;
    if (!prepare()) return;
    auto* thread = choose_running_thread(place_.tracer, place_.random);
    if (!thread || asked_.contains(thread) || !is_free(*thread)) return;
    price_.interrupting();
    const auto now = ptrace::Clock::now();
    if (thread->interrupt()) asked_[thread] = now;
}

bool Bursts::take(const ptrace::Event& event) {
    if (!event.thread) return false;
    if (event.kind == ptrace::EventKind::exec) asked_.clear();  // all others are gone
    if (in_progress() && take_own(event)) return true;
    if (const auto asked = asked_.find(event.thread); asked != asked_.end()) {
        price_.stopped(asked->second);
        asked_.erase(asked);
        if (event.kind == ptrace::EventKind::interrupted && !in_progress() && !has_enough()) {
            use_stop(*event.thread, ptrace::Clock::now());
            return true;
        }
    }
    if (event.kind != ptrace::EventKind::thread_gone) {
        cost_.price += Price::of_passing_stop;
        budget_.spent_besides(Price::of_passing_stop);
    }
    return false;
}

bool Bursts::has_enough() const {
    const auto most = place_.options.most_samples;
    return most && samples_ >= *most;
}

// A thread that is stopped on its way out of a system call spent its time there, and not in the
// code behind the call, which it has not reached: no sample begins there.
void Bursts::use_stop(ptrace::Thread& thread, ptrace::Clock::time_point stopped) {
    place_.tracer.repair_interrupted_call(thread);
    const auto registers = thread.registers();
    if (registers && registers->is_64bit() && !registers->in_system_call()) {
        schedule(patience);
        begin(thread, *registers);
    } else {
        thread.resume();
        finished(ptrace::Clock::now() - stopped);
    }
}

trace::TraceStart Bursts::next_sample() {
    trace::TraceStart start;
    start.trace = place_.numbers.next_trace();
    start.sample = place_.numbers.next_sample();
    ++samples_;
    return start;
}

void Bursts::finished(Seconds held) {
    const auto price = price_.of_stop(held);
    ++cost_.stops;
    cost_.stop_time += held;
    cost_.price += price;
    budget_.spent_on_sample(price);
    schedule_next();
}

void Bursts::held_again(Seconds held) {
    ++cost_.stops;
    cost_.stop_time += held;
    pay(Price::of_passing_stop + held);
}

void Bursts::pay(Seconds price) {
    cost_.price += price;
    budget_.spent_on_last_sample(price);
}

void Bursts::pay_once(Seconds held) {
    cost_.stop_time += held;
    cost_.price += held;
}

// Where more samples would hardly tell more, they may be fewer, until the program behaves anew.
void Bursts::schedule_next() {
    constexpr double good = 0.01, longest = 10;
    const double known = good / place_.precision;
    schedule(budget_.next_wait() * std::clamp(known * known, 1.0, longest));
}

void Bursts::schedule(Seconds wait) {
    next_tick_ = ptrace::Clock::now() + std::chrono::duration_cast<ptrace::Clock::duration>(wait);
}

}  // namespace shadowprof::shadow
