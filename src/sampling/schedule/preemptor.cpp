#include "sampling/schedule/preemptor.h"

#include <immintrin.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/clock.h"
#include "base/thread_if_any.h"
#include "proc/processors.h"
#include "ptrace/tracing_thread.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {
namespace {

void sleep_until(Clock::time_point when) {
    constexpr long in_second = 1'000'000'000;
    const long nanoseconds = when.time_since_epoch() / std::chrono::nanoseconds{1};
    const timespec time{nanoseconds / in_second, nanoseconds % in_second};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

}  // namespace

Preemptor::Preemptor() {
    sem_init(&sent_, 0, 0);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = thread_if_any([this] { run(); });  // without it threads are stopped where they are
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Preemptor::~Preemptor() {
    closing_ = true;
    sem_post(&sent_);
    if (thread_.joinable()) thread_.join();
    sem_destroy(&sent_);
}

void Preemptor::send(int processor, Clock::time_point when) {
    if (!thread_.joinable() || state_ != State::home || !move_to(processor)) return;
    when_ = when;
    state_ = State::coming;
    sem_post(&sent_);
}

void Preemptor::await() {
    while (state_ == State::coming && Clock::now() < when_ + tuning::preemptor_latest) _mm_pause();
    auto expected = State::there;
    state_.compare_exchange_strong(expected, State::met);
}

std::optional<Clock::time_point> Preemptor::occupies_since(int processor) const {
    const bool is_there = state_ == State::met && processor == processor_;
    if (!is_there || Clock::now() - last_ran_.load() >= tuning::ran_just_now) return {};
    return arrived_;
}

std::optional<Clock::time_point> Preemptor::displaced_since(int processor,
                                                            Clock::time_point asking_since) const {
    if (processor != sched_getcpu()) return occupies_since(processor);
    if (Clock::now() - asking_since >= tuning::before_taken_over) return {};
    return asking_since;
}

void Preemptor::release() {
    auto state = state_.load();
    while (state == State::coming || state == State::there || state == State::met)
        if (state_.compare_exchange_weak(state, State::released)) return;
}

bool Preemptor::move_to(int processor) {
    if (processor == processor_) return true;
    if (tid_ == 0) return false;  // it has not begun yet
    if (!proc::confine_to(processor, tid_)) return false;
    processor_ = processor;
    return true;
}

void Preemptor::run() {
    ptrace::wake_up_promptly();
    prctl(PR_SET_TIMERSLACK, 1);
    tid_ = gettid();
    while (true) {
        while (sem_wait(&sent_) != 0 && errno == EINTR) {
        }
        if (closing_) return;
        sleep_until(when_);
        arrived_ = Clock::now();
        auto expected = State::coming;
        if (state_.compare_exchange_strong(expected, State::there)) stay();
        state_ = State::home;
    }
}

void Preemptor::stay() {
    const auto stay_while = [this](State state, Clock::duration longest) {
        const auto until = Clock::now() + longest;
        for (auto now = Clock::now(); state_ == state && now < until; now = Clock::now()) {
            last_ran_ = now;
            _mm_pause();
        }
    };
    stay_while(State::there, tuning::preemptor_waits);
    auto expected = State::there;
    if (!state_.compare_exchange_strong(expected, State::home))
        stay_while(State::met, tuning::preemptor_stays);
}

}  // namespace shadowprof::sampling
