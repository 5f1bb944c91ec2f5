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

namespace shadowprof::sampling {
namespace {

// Where a processor has threads that are not to be displaced, nothing is lost but exactness. And
// who is late may be waiting for the very processor that ours has: it does not wait for long. Nor
// does one who is there take long, unless somebody holds it, who may then kill it.
constexpr std::chrono::microseconds latest{150}, longest_wait{300}, longest_meeting{2000};
// It runs there, and has not been displaced itself.
constexpr std::chrono::microseconds just_now{10};
// The kernel lets processors that have nothing to do take over threads that have not run for half a
// millisecond.
constexpr std::chrono::microseconds before_it_is_taken_over{300};

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
    while (state_ == State::coming && Clock::now() < when_ + latest) _mm_pause();
    auto expected = State::there;
    state_.compare_exchange_strong(expected, State::met);
}

std::optional<Clock::time_point> Preemptor::occupies_since(int processor) const {
    const bool is_there = state_ == State::met && processor == processor_;
    if (!is_there || Clock::now() - last_ran_.load() >= just_now) return {};
    return arrived_;
}

std::optional<Clock::time_point> Preemptor::displaced_since(int processor,
                                                            Clock::time_point asking_since) const {
    if (processor != sched_getcpu()) return occupies_since(processor);
    if (Clock::now() - asking_since >= before_it_is_taken_over) return {};
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
    stay_while(State::there, longest_wait);
    auto expected = State::there;
    if (!state_.compare_exchange_strong(expected, State::home))
        stay_while(State::met, longest_meeting);
}

}  // namespace shadowprof::sampling
