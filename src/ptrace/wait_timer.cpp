#include "ptrace/wait_timer.h"

#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "ptrace/tuning.h"

namespace shadowprof::ptrace {
namespace {

thread_local sigjmp_buf* way_out = nullptr;

// Who sleeps until a change, and would hear of a stop by a signal. The kernel sends one to the
// tracing thread; but while another one's signal waits to be taken, it sends none. So whoever takes
// one wakes all others, who look for themselves.
std::array<std::atomic<pid_t>, tuning::most_sleepers_at_bells> sleepers{};

class Sleeper {
  public:
    Sleeper() {
        const pid_t none = 0;
        for (auto& each : sleepers) {
            auto expected = none;
            if (!each.compare_exchange_strong(expected, gettid())) continue;
            place_ = &each;
            return;
        }
    }
    ~Sleeper() {
        if (place_) *place_ = 0;
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    bool is_woken_by_others() const { return place_ != nullptr; }

  private:
    std::atomic<pid_t>* place_ = nullptr;
};

void wake_others() {
    const pid_t us = gettid();
    for (const auto& each : sleepers)
        if (const pid_t tid = each; tid != 0 && tid != us)
            tgkill(getpid(), tid, WaitTimer::signal());
}

void leave(int, siginfo_t* info, void*) {
    const bool is_from_kernel = info->si_code > 0;
    if (is_from_kernel) wake_others();
    if (way_out) siglongjmp(*way_out, 1);
}

// Only looks: the wait status is still there for whoever takes it.
bool look_at_tracees(int how) {
    siginfo_t seen{};
    waitid(P_ALL, 0, &seen, how | WEXITED | WSTOPPED | WNOWAIT | __WALL | __WNOTHREAD);
    return seen.si_pid != 0;
}

std::mutex installing;
int who_want_stops = 0;

void set_action() {
    struct sigaction action {};
    action.sa_sigaction = leave;
    action.sa_flags = SA_SIGINFO | SA_RESTART | (who_want_stops > 0 ? 0 : SA_NOCLDSTOP);
    sigaction(WaitTimer::signal(), &action, nullptr);
}

}  // namespace

int WaitTimer::signal() {
    return SIGCHLD;
}

void WaitTimer::install() {
    const std::lock_guard lock{installing};
    set_action();
}

void WaitTimer::signal_stops(bool wanted) {
    const std::lock_guard lock{installing};
    who_want_stops += wanted ? 1 : -1;
    set_action();
}

WaitTimer::WaitTimer() {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal();
    event._sigev_un._tid = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0)
        throw UserError(std::string{"no timer can be created: "} + std::strerror(errno),
                        ExitStatus::profiler_failed);
}

WaitTimer::~WaitTimer() {
    timer_delete(timer_);
}

void WaitTimer::sleep_until_status(std::chrono::steady_clock::time_point deadline) {
    using namespace std::chrono;
    // Whatever might be missed is looked for before long.
    leave_at(std::min(deadline, steady_clock::now() + tuning::longest_sleep),
             [] { look_at_tracees(0); });
}

void WaitTimer::sleep_until_change(std::uint32_t& word, std::uint32_t from,
                                   std::chrono::steady_clock::time_point deadline) {
    const Sleeper sleeper;
    const std::chrono::steady_clock::duration longest =
        sleeper.is_woken_by_others() ? tuning::longest_sleep : tuning::sleep_among_many_tracers;
    leave_at(std::min(deadline, std::chrono::steady_clock::now() + longest), [&] {
        // What happened before the signal was unblocked was told to another thread, or to nobody.
        if (look_at_tracees(WNOHANG)) return;
        syscall(SYS_futex, &word, FUTEX_WAIT, from, nullptr, nullptr, 0);
    });
}

void WaitTimer::leave_at(std::chrono::steady_clock::time_point deadline,
                         const std::function<void()>& call) {
    using namespace std::chrono;
    const auto since_boot = duration_cast<nanoseconds>(deadline.time_since_epoch()).count();
    constexpr auto in_a_second = nanoseconds{seconds{1}}.count();
    const itimerspec when{{0, 0}, {since_boot / in_a_second, since_boot % in_a_second}};
    timer_settime(timer_, TIMER_ABSTIME, &when, nullptr);

    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal());
    sigjmp_buf here;
    constexpr int with_signal_mask = 1;
    if (sigsetjmp(here, with_signal_mask) == 0) {
        way_out = &here;
        pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
        call();
        pthread_sigmask(SIG_BLOCK, &set, nullptr);
    }
    way_out = nullptr;
}

}  // namespace shadowprof::ptrace
