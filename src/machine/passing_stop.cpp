#include "machine/passing_stop.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <span>

#include "base/clock.h"
#include "proc/processors.h"
#include "ptrace/die_with.h"
#include "ptrace/tracer.h"

namespace shadowprof::machine {

namespace {

// Signals. Between two of them the child computes, so that we sleep when the next one comes; where
// the guest looks for work before it halts its processor, as Linux does for 0.2 ms, not as deeply.
constexpr Seconds soon{20e-6}, later{400e-6}, is_later{100e-6};

struct Prices {
    Seconds of_soon, of_later;
};
// Where they cannot be measured.
constexpr Prices usual{Seconds{45e-6}, Seconds{45e-6}};

struct Course {
    std::array<Seconds, 12> soon;
    std::array<Seconds, 6> later;
};
struct Shared {
    std::atomic<bool> is_ready = false, is_traced = false;
    Course alone, traced;
};

void ignore(int) {}

void have_signals(std::span<Seconds> took, Seconds between) {
    for (auto& each : took) {
        const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(between);
        while (Clock::now() < until) {
        }
        const auto began = Clock::now();
        raise(SIGUSR1);
        each = Clock::now() - began;
    }
}

void run(Course& course) {
    have_signals(course.soon, soon);
    have_signals(course.later, later);
}

// Whom we trace is seldom on our processor, if there is another: so this thread stays where it is,
// and the child goes elsewhere.
class Apart {
  public:
    Apart() : here_(sched_getcpu()) {
        CPU_ZERO(&all_);
        sched_getaffinity(0, sizeof all_, &all_);
        proc::confine_to(here_);
    }
    ~Apart() { sched_setaffinity(0, sizeof all_, &all_); }
    Apart(const Apart&) = delete;
    Apart& operator=(const Apart&) = delete;

    void go_elsewhere() const {
        for (int other = 0; other < CPU_SETSIZE; ++other) {
            if (other == here_ || !CPU_ISSET(static_cast<std::size_t>(other), &all_)) continue;
            proc::confine_to(other);
            return;
        }
    }

  private:
    int here_;
    cpu_set_t all_;
};

[[noreturn]] void be_traced(Shared& shared, pid_t by, const Apart& apart) {
    ptrace::die_with(by);
    signal(SIGUSR1, ignore);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, nullptr);
    apart.go_elsewhere();
    run(shared.alone);
    shared.is_ready = true;
    while (!shared.is_traced) sched_yield();
    run(shared.traced);
    _exit(0);
}

// With all that Tracer asks the kernel for, between a stop and its end.
void trace(pid_t child) {
    constexpr int look = WEXITED | WSTOPPED | WNOWAIT | __WALL;
    const auto id = static_cast<id_t>(child);
    siginfo_t news, info;
    sigset_t mask;
    user_regs_struct registers;
    while (waitid(P_PID, id, &news, look) == 0) {
        sigprocmask(SIG_BLOCK, nullptr, &mask);
        waitid(P_PID, id, &news, look | WNOHANG);
        int status = 0;
        if (waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status)) return;
        ::ptrace(PTRACE_GETSIGINFO, child, nullptr, &info);
        ::ptrace(PTRACE_GETREGS, child, nullptr, &registers);
        ::ptrace(PTRACE_CONT, child, nullptr, WSTOPSIG(status));
    }
}

// The least of them, and no more than this: that we or the child had to wait for a processor, while
// the machine was busy, is not the price; and sampling would spare for it.
constexpr Seconds most{100e-6};
Seconds least_of(std::span<const Seconds> all) {
    return *std::min_element(all.begin(), all.end());
}
Seconds price_by(std::span<const Seconds> traced, std::span<const Seconds> alone) {
    return std::min(least_of(traced) - least_of(alone), most);
}

std::optional<Prices> measure(Shared& shared) {
    const Apart apart;
    const pid_t us = getpid(), child = fork();
    if (child == 0) be_traced(shared, us, apart);
    if (child < 0) return {};
    while (!shared.is_ready) {
        if (waitpid(child, nullptr, __WALL | WNOHANG) != 0) return {};
        sched_yield();
    }
    const bool is_traced = ::ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0;
    shared.is_traced = true;
    trace(child);
    const Prices prices{price_by(shared.traced.soon, shared.alone.soon),
                        price_by(shared.traced.later, shared.alone.later)};
    const bool are_plausible = prices.of_soon > Seconds{0} && prices.of_later > Seconds{0};
    return is_traced && are_plausible ? std::optional{prices} : std::nullopt;
}

Prices measure() {
    auto* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return usual;
    const auto measured = measure(*new (memory) Shared);
    munmap(memory, sizeof(Shared));
    return measured.value_or(usual);
}

}  // namespace

Seconds price_of_passing_stop(Seconds since_last) {
    static const Prices measured = measure();
    return since_last < is_later ? measured.of_soon : measured.of_later;
}

}  // namespace shadowprof::machine
