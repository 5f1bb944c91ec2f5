#include "ptrace/tracer.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "ptrace/call_repair.h"
#include "ptrace/cpu_follower.h"
#include "ptrace/detacher.h"
#include "ptrace/event_reader.h"
#include "ptrace/loose_threads.h"
#include "ptrace/parent_thread.h"
#include "ptrace/thread_seizer.h"
#include "ptrace/traced_threads.h"
#include "ptrace/tracing_thread.h"
#include "ptrace/tuning.h"
#include "ptrace/wait_timer.h"

namespace shadowprof::ptrace {

Tracer::Tracer(pid_t pid, bool launched)
    : pid_(pid),
      launched_(launched),
      timer_(std::make_unique<WaitTimer>()),
      threads_(std::make_unique<TracedThreads>(pid)),
      repair_(std::make_unique<CallRepair>(pid)),
      reader_(std::make_unique<EventReader>(*threads_, *repair_)) {
    wake_up_promptly();
}

Tracer::~Tracer() {
    let_go_of_everything();
}

std::optional<Event> Tracer::let_go_of_everything() {
    set_bell({});
    if (std::exchange(alive_, false))
        Detacher{*threads_, *reader_, *repair_, *timer_}.let_go_of_everything();
    return reader_->end();
}

std::vector<Thread*> Tracer::threads() {
    return threads_->all();
}
Thread* Tracer::thread(pid_t tid) {
    return threads_->find(tid);
}

void Tracer::wake() {
    wake_requested_ = true;
    if (const pid_t tid = waiting_thread_) tgkill(getpid(), tid, WaitTimer::signal());
}

std::optional<Event> Tracer::wait(Clock::time_point deadline) {
    waiting_thread_ = gettid();
    tell_of_stop();
    if (!reader_->has_kept() && !remembers_gone_) threads_->forget_removed();
    while (alive_ && !wake_requested_.exchange(false)) {
        if (seizer_) seizer_->look_for_missed();
        if (auto event = reader_->next()) {
            alive_ = event->kind != EventKind::process_gone;
            if (follower_ && event->thread) follower_->stopped();
            if (loose_ && event->kind == EventKind::exec) loose_->program_is_new();
            return event;
        }
        if (loose_) {
            if (auto gone = loose_->look_at_process()) {
                alive_ = false;
                return gone;
            }
            if (reader_->has_unreported_stop()) return {};
        }
        if (is_rung()) return {};
        const auto now = Clock::now();
        if (now >= deadline) return {};
        if (now < Thread::last_asked() + tuning::worth_watching) continue;
        if (now < last_ring_ + tuning::worth_listening) continue;
        sleep(deadline);
    }
    return {};
}

void Tracer::tell_of_stop() {
    if (const int signal = reader_->take_unreported_stop(); signal != 0 && when_stopped_)
        when_stopped_(signal);
}

void Tracer::leave_alone(const Event& exec) {
    set_bell({});
    stop_following();
    be_ready_to_let_go();
    loose_->leave_alone(*exec.thread);
    alive_ = false;
}

std::optional<Event> Tracer::watch(Clock::time_point deadline) {
    waiting_thread_ = gettid();
    while (!wake_requested_.exchange(false)) {
        if (auto gone = loose_->look_at_process()) return gone;
        tell_of_stop();
        if (Clock::now() >= deadline) return {};
        loose_->sleep_until(deadline);
    }
    return {};
}

void Tracer::set_bell(std::optional<Bell> bell) {
    if (bell_.has_value() != bell.has_value()) WaitTimer::signal_stops(bell.has_value());
    bell_ = bell;
    rings_heard_ = 0;
}

bool Tracer::bell_was_rung() const {
    return bell_ && std::atomic_ref{*bell_->rings}.load() != rings_heard_;
}

bool Tracer::is_rung() {
    if (!bell_was_rung()) return false;
    rings_heard_ = std::atomic_ref{*bell_->rings}.load();
    last_ring_ = Clock::now();
    return true;
}

void Tracer::sleep(Clock::time_point deadline) {
    if (!bell_ && loose_ && loose_->sleep_until(deadline)) return;
    if (!bell_) return timer_->sleep_until_status(deadline);
    if (std::atomic_ref{*bell_->is_mute}.load() != 0)
        deadline = std::min(deadline, Clock::now() + tuning::sleep_beside_mute_bell);
    std::atomic_ref{*bell_->is_slept_at}.store(1);
    timer_->sleep_until_change(*bell_->rings, rings_heard_, deadline);
    std::atomic_ref{*bell_->is_slept_at}.store(0);
}

void Tracer::give_back(const Event& event) {
    reader_->give_back(event);
    alive_ = true;
}

void Tracer::pass_on(const Event& event) {
    if (!event.thread || !event.thread->stopped()) return;
    auto& thread = *event.thread;
    switch (event.kind) {
        case EventKind::group_stop:
            thread.listen();
            return;
        case EventKind::signal:
            repair_->repair(thread);
            thread.resume(event.signal);
            return;
        case EventKind::interrupted:
            repair_->repair(thread);
            thread.resume();
            return;
        default:
            thread.resume();
            return;
    }
}

bool Tracer::repair_interrupted_call(Thread& thread) {
    return repair_->repair(thread);
}

void Tracer::be_ready_to_let_go() {
    if (!seizer_) seizer_ = std::make_unique<ThreadSeizer>(*threads_, *reader_, *timer_);
    if (!loose_)
        loose_ = std::make_unique<LooseThreads>(launched_, *threads_, *reader_, *seizer_, *repair_,
                                                *timer_);
}

bool Tracer::let_go(const Event& event) {
    be_ready_to_let_go();
    return loose_->let_go(event);
}

void Tracer::look_for_births_and_ends() {
    if (alive_ && loose_) loose_->look_for_births_and_ends();
}

bool Tracer::ask_to_stop(Thread& thread) {
    return alive_ && (!thread.is_loose() || loose_->hold(thread)) && thread.interrupt();
}

void Tracer::hold_all() {
    if (alive_ && loose_) loose_->hold_all();
}

std::string Tracer::why_not_held() const {
    return loose_ ? loose_->why_not_held() : "";
}

bool Tracer::is_anyone_asked() const {
    return std::ranges::any_of(threads_->all(), [](const Thread* thread) {
        return thread->is_asked() && thread->will_be_heard_of();
    });
}

void Tracer::follow(const Thread& thread) {
    follower_.reset();
    follower_ = std::make_unique<CpuFollower>(pid_, thread.tid());
}

void Tracer::stop_following() {
    follower_.reset();
}

}  // namespace shadowprof::ptrace
