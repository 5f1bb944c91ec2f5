#include "shadow/passing_stop.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <optional>

#include "ptrace/processors.h"
#include "ptrace/tracer.h"

namespace shadowprof::shadow {

namespace {

using ptrace::Clock;

// Where it cannot be measured.
constexpr Seconds usual{45e-6};
// Signals; and between two of them the child computes, so that we sleep when the next one comes.
constexpr std::size_t signals = 12;
constexpr Seconds between{20e-6};

struct Shared {
    std::atomic<bool> is_ready = false, is_traced = false;
    std::array<Seconds, signals> alone, traced;
};

void ignore(int) {}

void have_signals(std::array<Seconds, signals>& took) {
    for (auto& each : took) {
        const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(between);
        while (Clock::now() < until) {
        }
        const auto began = Clock::now();
        raise(SIGUSR1);
        each = Clock::now() - began;
    }
}

// Whom we trace is seldom on our processor, if there is another: so this thread stays where it is,
// and the child goes elsewhere.
class Apart {
  public:
    Apart() : here_(sched_getcpu()) {
        CPU_ZERO(&all_);
        sched_getaffinity(0, sizeof all_, &all_);
        ptrace::confine_to(here_);
    }
    ~Apart() { sched_setaffinity(0, sizeof all_, &all_); }
    Apart(const Apart&) = delete;
    Apart& operator=(const Apart&) = delete;

    void go_elsewhere() const {
        for (int other = 0; other < CPU_SETSIZE; ++other) {
            if (other == here_ || !CPU_ISSET(static_cast<std::size_t>(other), &all_)) continue;
            ptrace::confine_to(other);
            return;
        }
    }

  private:
    int here_;
    cpu_set_t all_;
};

[[noreturn]] void be_traced(Shared& shared, pid_t by, const Apart& apart) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != by) _exit(1);
    signal(SIGUSR1, ignore);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, nullptr);
    apart.go_elsewhere();
    have_signals(shared.alone);
    shared.is_ready = true;
    while (!shared.is_traced) sched_yield();
    have_signals(shared.traced);
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

// The lower quartile: what others take of the machine now and then is not the price.
Seconds usual_of(std::array<Seconds, signals>& all) {
    std::sort(all.begin(), all.end());
    return all[signals / 4];
}

std::optional<Seconds> measure(Shared& shared) {
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
    const auto price = usual_of(shared.traced) - usual_of(shared.alone);
    return is_traced && price > Seconds{0} ? std::optional{price} : std::nullopt;
}

Seconds measure() {
    auto* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return usual;
    const auto measured = measure(*new (memory) Shared);
    munmap(memory, sizeof(Shared));
    return measured.value_or(usual);
}

}  // namespace

Seconds price_of_passing_stop() {
    static const Seconds measured = measure();
    return measured;
}

}  // namespace shadowprof::shadow
