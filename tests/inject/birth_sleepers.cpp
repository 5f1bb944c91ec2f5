// Programs that mostly sleep, in system calls whose disturbance one would notice, and compute in
// between. `birth-sleepers SCENARIO ROUNDS`, or until SIGTERM if ROUNDS is 0. Each writes the
// number of the round now and then, so that whatever ran twice or not at all would show, and ends
// with "fine" and status 0.
#include <linux/futex.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

volatile sig_atomic_t stop_requested = 0;
volatile sig_atomic_t alarms = 0;
sigjmp_buf back;

void on_term(int) {
    stop_requested = 1;
}
void on_alarm(int) {
    alarms = alarms + 1;
}
void on_alarm_leave(int) {
    alarms = alarms + 1;
    siglongjmp(back, 1);
}

void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    // An alarm that comes before on_term's first instruction would leave it for good.
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
}

void set_alarm() {
    const itimerval once{{0, 0}, {0, 1000}};
    setitimer(ITIMER_REAL, &once, nullptr);
}

constexpr timespec millisecond{0, 1'000'000};

bool sleep_in_nanosleep() {
    return nanosleep(&millisecond, nullptr) == 0;
}

bool sleep_in_poll() {
    return poll(nullptr, 0, 1) == 0;
}

bool sleep_in_futex() {
    std::uint32_t word = 0;
    return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &millisecond, nullptr, 0) == -1 &&
           errno == ETIMEDOUT;
}

bool sleep_in_read() {
    static const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    const itimerspec once{{0, 0}, millisecond};
    std::uint64_t times = 0;
    return timerfd_settime(timer, 0, &once, nullptr) == 0 &&
           read(timer, &times, sizeof times) == sizeof times && times == 1;
}

bool sleep_in_epoll_wait() {
    static const int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event;
    return epoll_wait(epoll, &event, 1, 1) == 0;
}

bool sleep_in_semtimedop() {
    static const int semaphores = [] {
        const int made = semget(IPC_PRIVATE, 1, 0600);
        // It is gone when we are, however we end: two thousand would be too many.
        static int to_remove = made;
        std::atexit([] { semctl(to_remove, 0, IPC_RMID); });
        return made;
    }();
    sembuf take{0, -1, 0};
    return semtimedop(semaphores, &take, 1, &millisecond) == -1 && errno == EAGAIN;
}

bool sleep_in_sigtimedwait() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    return sigtimedwait(&set, nullptr, &millisecond) == -1 && errno == EAGAIN;
}

// The alarm may come before the read; then it comes again.
bool sleep_until_alarm() {
    static const auto ends = [] {
        std::array<int, 2> made{};
        if (pipe(made.data()) != 0) std::abort();
        return made;
    }();
    handle(SIGALRM, on_alarm, 0);
    const itimerval often{{0, 2000}, {0, 1000}};
    const auto before = alarms;
    setitimer(ITIMER_REAL, &often, nullptr);
    char byte = 0;
    const bool interrupted = read(ends[0], &byte, 1) == -1 && errno == EINTR;
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    return interrupted && alarms > before;
}

bool leave_handler_by_longjmp() {
    handle(SIGALRM, on_alarm_leave, 0);
    const auto before = alarms;
    if (sigsetjmp(back, 1) == 0) {
        set_alarm();
        volatile int n = 0;
        while (true) n = n + 1;
    }
    return alarms == before + 1;
}

// A wait for any child must find ours and no other.
bool wait_for_child() {
    const pid_t child = fork();
    if (child == 0) {
        nanosleep(&millisecond, nullptr);
        _exit(7);
    }
    int status = 0;
    return wait(&status) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7 &&
           waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
}

struct Scenario {
    std::string_view name;
    bool (*sleep)();
};
constexpr Scenario scenarios[] = {
    {"nanosleep", sleep_in_nanosleep},
    {"poll", sleep_in_poll},
    {"futex", sleep_in_futex},
    {"read", sleep_in_read},
    {"epoll_wait", sleep_in_epoll_wait},
    {"semtimedop", sleep_in_semtimedop},
    {"sigtimedwait", sleep_in_sigtimedwait},
    {"alarm", sleep_until_alarm},
    {"longjmp", leave_handler_by_longjmp},
    {"wait", wait_for_child},
};

// Something whose result is known.
bool compute() {
    std::uint64_t x = 1;
    for (int n = 0; n < 300'000; ++n) x = x * 6364136223846793005u + 1442695040888963407u;
    return x == 0x05ccf7e7a204eee1;
}

void say(const char* text) {
    if (write(STDOUT_FILENO, text, std::strlen(text)) < 0) std::abort();
}

int run(const Scenario& scenario, long rounds) {
    for (long round = 1; !stop_requested && (rounds == 0 || round <= rounds); ++round) {
        if (!compute()) return 1;
        errno = 0;
        if (!scenario.sleep() && !stop_requested) {
            std::array<char, 64> text{};
            std::snprintf(text.data(), text.size(), "round %ld: errno %d\n", round, errno);
            say(text.data());
            return 1;
        }
        if (round % 100 == 0) {
            std::array<char, 32> text{};
            std::snprintf(text.data(), text.size(), "%ld\n", round / 100);
            say(text.data());
        }
    }
    say("fine\n");
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    handle(SIGTERM, on_term, SA_RESTART);
    for (const auto& scenario : scenarios)
        if (scenario.name == arguments[1]) return run(scenario, std::atol(arguments[2]));
    return 2;
}
