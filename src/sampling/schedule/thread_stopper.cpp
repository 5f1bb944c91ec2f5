#include "sampling/schedule/thread_stopper.h"

#include <algorithm>

#include "sampling/schedule/choose_thread.h"
#include "sampling/schedule/time_source.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

Seconds ThreadStopper::rest() {
    return tuning::rest_before_asking;
}

void ThreadStopper::choose() {
    auto* const thread = choose_thread(threads_, random_);
    chosen_ = thread ? thread->tid() : 0;
    missed_ = 0;
}

void ThreadStopper::aim() {
    looks_at_ = after(Clock::now(), rest());
    if (const auto stat = threads_.stat(chosen_))
        preemptors_[0].send(stat->processor, after(looks_at_, our_wake_up_));
}

// Whether it runs must be asked at the very moment: of threads that also ran some time before, none
// has just been woken.
ThreadStopper::Attempt ThreadStopper::look() {
    const auto began = Clock::now();
    our_wake_up_ +=
        (std::min(Seconds{began - looks_at_}, tuning::longest_wake_up_of_ours) - our_wake_up_) /
        tuning::wake_ups_remembered;
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
    const bool missed =
        running.thread && !displaced && ++missed_ < tuning::most_missed_displacements;
    return {missed, running.thread, displaced};
}

bool ThreadStopper::ask(const Attempt& attempt) {
    const auto now = Clock::now();
    if (!threads_.ask_to_stop(*attempt.thread)) return false;
    asked_[attempt.thread] = {now, now - attempt.displaced_since.value_or(now)};
    return true;
}

void ThreadStopper::release() {
    for (auto& preemptor : preemptors_) preemptor.release();
}

std::optional<int> ThreadStopper::processor_of(pid_t tid) {
    const auto stat = threads_.stat(tid);
    return stat && stat->state == 'R' ? std::optional{stat->processor} : std::nullopt;
}

// The one that was chosen, unless it has gone to sleep meanwhile. Looked at once: while we look it
// is kept from its processor.
ThreadStopper::Running ThreadStopper::running_thread() {
    auto* const thread = threads_.find(chosen_);
    if (thread && !thread->stopped())
        if (const auto processor = processor_of(chosen_)) return {thread, processor};
    auto* const other = choose_running_thread(threads_, random_);
    return {other, other ? processor_of(other->tid()) : std::nullopt};
}

std::optional<ThreadStopper::Asked> ThreadStopper::answer(const ptrace::Event& event) {
    const auto node = asked_.extract(event.thread);
    return node.empty() ? std::nullopt : std::optional{node.mapped()};
}

bool ThreadStopper::has_asked(const ptrace::Thread& thread) const {
    return asked_.contains(&thread);
}

}  // namespace shadowprof::sampling
