// The program that the tests trace. `target SCENARIO [ARGUMENT]`: each scenario watches itself,
// says what it saw on stdout and exits 0 if it saw nothing that it did not cause.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

std::atomic<long> surprises{0};

[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
}

void surprise(const char* where, long result) {
    if (surprises++ < 10) say("%s: result %ld, errno %d", where, result, errno);
}

void expect(bool fine, const char* where) {
    if (!fine) surprise(where, 0);
}

int verdict() {
    say(surprises ? "not fine" : "fine");
    return surprises ? 1 : 0;
}

std::atomic<bool> stop_requested{false};

void on_term(int) {
    stop_requested = true;
}

void burn(std::chrono::microseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
}

// --- how it ends ---------------------------------------------------------------------------------

int exit_with(const char* status) {
    return std::atoi(status);
}

int kill_self(const char* signal) {
    kill(getpid(), std::atoi(signal));
    pause();
    return 0;
}

int segfault(const char*) {
    volatile int* volatile nowhere = nullptr;
    *nowhere = 1;
    return 0;
}

// --- what it was given ---------------------------------------------------------------------------

int surroundings(const char*) {
    char line[512];
    FILE* status = fopen("/proc/self/status", "re");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigIgn", 6) ||
            !strncmp(line, "SigCgt", 6) || !strncmp(line, "SigPnd", 6) ||
            !strncmp(line, "ShdPnd", 6))
            printf("%s", line);
    fclose(status);
    for (int fd = 0; fd < 1024; ++fd)
        if (fcntl(fd, F_GETFD) >= 0) printf("fd %d\n", fd);
    int death_signal = -1;
    prctl(PR_GET_PDEATHSIG, &death_signal);
    printf("death signal %d, group %d, session %d, directory %s\n", death_signal, getpgrp(),
           getsid(0), getcwd(line, sizeof line));
    for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
        rlimit limit{};
        getrlimit(static_cast<__rlimit_resource>(resource), &limit);
        printf("limit %d %lu %lu\n", resource, limit.rlim_cur, limit.rlim_max);
    }
    return 0;
}

// --- signals -------------------------------------------------------------------------------------

siginfo_t last_info;
std::atomic<int> info_count{0};

void remember_info(int, siginfo_t* info, void*) {
    last_info = *info;
    ++info_count;
}

void handle(int signal, int flags = 0) {
    struct sigaction action {};
    action.sa_sigaction = remember_info;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(signal, &action, nullptr);
}

// Says what every queued SIGRTMIN carried, until one carries 0.
int queued_values(const char*) {
    handle(SIGRTMIN);
    sigset_t mask, before;
    sigemptyset(&mask);
    sigaddset(&mask, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &mask, &before);
    say("ready");
    do {
        sigsuspend(&before);
        say("code %d pid %d value %d", last_info.si_code, last_info.si_pid,
            last_info.si_value.sival_int);
    } while (last_info.si_value.sival_int != 0);
    return 0;
}

// Counts forever, so that one can see whether it runs.
int count(const char*) {
    for (unsigned long n = 0;; ++n) {
        say("%lu", n);
        std::this_thread::sleep_for(10ms);
    }
}

int spin(const char*) {
    signal(SIGTERM, on_term);
    say("ready");
    volatile unsigned long n = 0;
    while (!stop_requested) n = n + 1;
    return verdict();
}

// epoll_pwait lets a blocked signal in only while it waits, and must then answer EINTR: each signal
// that the handler saw has to be matched by one EINTR. Ignored signals, from a child of its own,
// disturb all the while.
int atomic_wait(const char* rounds) {
    handle(SIGUSR1);
    signal(SIGWINCH, SIG_IGN);
    sigset_t mask, open_mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_BLOCK, &mask, &open_mask);
    const int wanted = std::atoi(rounds);
    const pid_t self = getpid();
    int turn[2];
    if (pipe(turn) != 0) return 1;
    const pid_t child = fork();
    if (child == 0) {
        close(turn[1]);
        char byte;
        while (read(turn[0], &byte, 1) == 1) {
            for (int i = 0; i < 5; ++i) kill(self, SIGWINCH);
            kill(self, SIGUSR1);
            for (int i = 0; i < 5; ++i) kill(self, SIGURG);
        }
        _exit(0);
    }
    close(turn[0]);
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    say("ready");
    for (int n = 0; n < wanted; ++n) {
        const int before = info_count;
        if (write(turn[1], "x", 1) != 1) return 1;
        epoll_event event;
        const int result = epoll_pwait(epoll, &event, 1, 10000, &open_mask);
        if (result != -1 || errno != EINTR) surprise("epoll_pwait", result);
        if (info_count == before) surprise("EINTR without a signal", before);
    }
    close(turn[1]);
    while (waitpid(child, nullptr, 0) < 0) {
    }
    return verdict();
}

// SIGCHLD as most programs have it, default and so ignored, while children end and the program
// waits. Natively the wait is not disturbed. The timeout is long, so that only EINTR can end it.
// The children end one at a time, when all threads are there: otherwise one may disturb it if it is
// traced (docs/rooms/signals-and-calls.md, "Signals").
int children_end(const char* number) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    int done[2];
    if (pipe2(done, O_CLOEXEC) != 0) return 1;
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(epoll, EPOLL_CTL_ADD, done[0], &event);
    // The signal goes to the thread that forked, if it wants it: to this one.
    const int children = std::atoi(number);
    for (int n = 0; n < children; ++n)
        if (fork() == 0) {
            std::this_thread::sleep_for(200ms + n * 10ms);
            _exit(0);
        }
    std::thread last([&] {
        for (int n = 0; n < children; ++n) waitpid(-1, nullptr, 0);
        if (write(done[1], "x", 1) != 1) surprise("write", 0);
    });
    const int result = epoll_wait(epoll, &event, 1, 30000);
    if (result != 1) surprise("epoll_wait", result);
    last.join();
    return verdict();
}

// Waits with timeouts, each of them disturbed by ignored signals that come much more often: it must
// end neither before its time nor much later, and not with EINTR.
using Wait = bool (*)(int epoll, int socket);  // true if its time was over

constexpr Wait waits[] = {
    [](int epoll, int) {
        epoll_event event;
        return epoll_wait(epoll, &event, 1, 100) == 0;
    },
    [](int, int socket) {
        char byte;
        return recv(socket, &byte, 1, 0) == -1 && errno == EAGAIN;
    },
    [](int, int) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGRTMIN + 5);
        const timespec timeout{0, 100'000'000};
        return sigtimedwait(&set, nullptr, &timeout) == -1 && errno == EAGAIN;
    },
};

int disturbed_timeouts(const char*) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 1;
    const timeval timeout{0, 100'000};
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    const pthread_t self = pthread_self();
    std::thread disturber([&] {
        while (!stop_requested) {
            pthread_kill(self, SIGURG);
            std::this_thread::sleep_for(5ms);
        }
    });
    for (const auto wait : waits) {
        const auto begin = std::chrono::steady_clock::now();
        expect(wait(epoll, ends[0]), "wait");
        const auto waited = std::chrono::steady_clock::now() - begin;
        expect(waited >= 99ms, "too early");
        expect(waited < 2s, "too late");
    }
    stop_requested = true;
    disturber.join();
    return verdict();
}

// --- sleepers ------------------------------------------------------------------------------------

// Each sleeper waits in a call of its kind, briefly or long, and reports every answer but a
// timeout.
using Sleeper = void (*)();

void sleep_in_epoll() {
    static const int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event;
    const int result = epoll_wait(epoll, &event, 1, 7);
    if (result != 0) surprise("epoll_wait", result);
}

void sleep_in_sigtimedwait() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 5);
    const timespec timeout{0, 7'000'000};
    const int result = sigtimedwait(&set, nullptr, &timeout);
    if (result != -1 || errno != EAGAIN) surprise("sigtimedwait", result);
}

int semaphore_set = -1;

void sleep_in_semtimedop() {
    sembuf operation{0, -1, 0};
    const timespec timeout{0, 7'000'000};
    const int result = semtimedop(semaphore_set, &operation, 1, &timeout);
    if (result != -1 || errno != EAGAIN) surprise("semtimedop", result);
}

void sleep_in_recv() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return surprise("pair", 0);
    const timeval timeout{0, 7000};
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    char byte;
    const auto result = recv(ends[0], &byte, 1, 0);
    if (result != -1 || errno != EAGAIN) surprise("recv", result);
    close(ends[0]);
    close(ends[1]);
}

void sleep_in_futex() {
    static std::mutex mutex;
    static std::condition_variable never;
    std::unique_lock lock{mutex};
    never.wait_for(lock, 7ms);
}

void sleep_in_semaphore() {
    static sem_t semaphore;
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 7'000'000;
    if (until.tv_nsec >= 1'000'000'000) ++until.tv_sec, until.tv_nsec -= 1'000'000'000;
    const int result = sem_timedwait(&semaphore, &until);
    if (result != -1 || errno != ETIMEDOUT) surprise("sem_timedwait", result);
}

void sleep_in_poll() {
    const int result = poll(nullptr, 0, 7);
    if (result != 0) surprise("poll", result);
}

void sleep_in_nanosleep() {
    const timespec time{0, 7'000'000};
    const int result = nanosleep(&time, nullptr);
    if (result != 0) surprise("nanosleep", result);
}

void sleep_in_select() {
    timeval timeout{0, 7000};
    const int result = select(0, nullptr, nullptr, nullptr, &timeout);
    if (result != 0) surprise("select", result);
}

void run_a_little() {
    burn(300us);
}

constexpr Sleeper sleepers[] = {
    sleep_in_epoll,     sleep_in_sigtimedwait, sleep_in_semtimedop, sleep_in_recv,   sleep_in_futex,
    sleep_in_semaphore, sleep_in_poll,         sleep_in_nanosleep,  sleep_in_select, run_a_little,
};

// Keeps `number` threads alive; each lives for some rounds and is replaced.
int threads_that_sleep(const char* number) {
    // Sleepers do not see the SIGTERM that ends us: a call to sigtimedwait() that begins while it
    // is pending for the process answers EINTR, whichever thread will handle it.
    signal(SIGTERM, on_term);
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, nullptr);
    semaphore_set = semget(IPC_PRIVATE, 1, 0600);
    std::atomic<long> lives{0};
    const auto life = [&](std::size_t kind) {
        for (int round = 0; round < 20 && !stop_requested; ++round) {
            sleepers[kind % std::size(sleepers)]();
            burn(50us);
        }
        ++lives;
    };
    std::vector<std::thread> keepers;
    for (std::size_t n = 0; n < std::strtoul(number, nullptr, 10); ++n)
        keepers.emplace_back([&, n] {
            // Half of them live through.
            while (!stop_requested) {
                if (n % 2) {
                    std::thread(life, n / 2).join();
                } else {
                    life(n / 2);
                }
            }
        });
    pthread_sigmask(SIG_UNBLOCK, &term, nullptr);
    say("ready");
    for (auto& keeper : keepers) keeper.join();
    semctl(semaphore_set, 0, IPC_RMID);
    if (lives == 0) surprise("no thread lived", 0);
    return verdict();
}

// --- children ------------------------------------------------------------------------------------

[[gnu::noinline]] pid_t vfork_and_exec() {
    const pid_t pid = vfork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", "exit 5", nullptr);
        _exit(99);
    }
    return pid;
}

int run_children(const char* rounds) {
    for (int n = 0; n < std::atoi(rounds); ++n) {
        const int of_system = system("exit 3");
        expect(WIFEXITED(of_system) && WEXITSTATUS(of_system) == 3, "system");

        pid_t spawned = 0;
        char name[] = "sh", option[] = "-c", script[] = "exit 4";
        char* const arguments[] = {name, option, script, nullptr};
        expect(posix_spawn(&spawned, "/bin/sh", nullptr, nullptr, arguments, environ) == 0,
               "spawn");
        int status = 0;
        expect(waitpid(spawned, &status, 0) == spawned && WEXITSTATUS(status) == 4, "spawned");

        const pid_t vforked = vfork_and_exec();
        expect(waitpid(vforked, &status, 0) == vforked && WEXITSTATUS(status) == 5, "vforked");

        const pid_t forked = fork();
        if (forked == 0) _exit(6);
        expect(waitpid(forked, &status, 0) == forked && WEXITSTATUS(status) == 6, "forked");
    }
    return verdict();
}

alignas(16) char other_stack[65536];

// A process of its own that shares our memory and ends without SIGCHLD: to ptrace it looks like a
// thread at birth.
int shares_memory(const char*) {
    static std::atomic<int> seen{0};
    const auto body = [](void*) {
        seen = 1;
        char line[256];
        FILE* status = fopen("/proc/self/status", "re");
        while (fgets(line, sizeof line, status))
            if (int tracer = -1; sscanf(line, "TracerPid: %d", &tracer) == 1)
                seen = tracer == 0 ? 2 : 3;
        fclose(status);
        return 0;
    };
    for (int n = 0; n < 10; ++n) {
        seen = 0;
        const pid_t pid = clone(body, other_stack + sizeof other_stack, CLONE_VM, nullptr);
        int status = 0;
        expect(waitpid(pid, &status, __WALL) == pid && status == 0, "clone");
        expect(seen == 2, "it was traced");
    }
    return verdict();
}

// --- threads -------------------------------------------------------------------------------------

int storm(const char* number) {
    std::atomic<int> ran{0};
    const int wanted = std::atoi(number);
    std::vector<std::thread> starters;
    for (int starter = 0; starter < 4; ++starter)
        starters.emplace_back([&] {
            for (int n = 0; n < wanted; ++n) std::thread([&] { ++ran; }).detach();
        });
    for (auto& starter : starters) starter.join();
    while (ran < 4 * wanted) std::this_thread::sleep_for(1ms);
    return verdict();
}

int breed(const char*) {
    say("ready");
    for (;;) std::thread([] {}).join();
}

int exec_from_thread(const char*) {
    std::thread sleeper([] { pause(); });
    std::thread runner([] {
        for (;;) burn(1s);
    });
    std::thread([] {
        burn(2ms);
        execl("/proc/self/exe", "target", "exit", "42", nullptr);
    }).join();
    return 1;
}

// Threads that an exec has to end, again and again.
int exec_again(const char* rounds) {
    const int left = std::atoi(rounds);
    if (left == 0) return 44;
    for (int n = 0; n < 3; ++n)
        std::thread([] {
            for (;;) burn(1s);
        }).detach();
    burn(std::chrono::milliseconds{left % 5});
    execl("/proc/self/exe", "target", "exec-again", std::to_string(left - 1).c_str(), nullptr);
    return 1;
}

int leader_exits_first(const char*) {
    std::thread([] {
        std::this_thread::sleep_for(30ms);
        exit(43);
    }).detach();
    pthread_exit(nullptr);
}

int leader_exits_and_others_run(const char*) {
    std::thread([] {
        say("ready");
        for (int n = 0; n < 300; ++n) sleep_in_epoll();
        exit(verdict() == 0 ? 44 : 1);
    }).detach();
    pthread_exit(nullptr);
}

int hectic(const char*) {
    std::vector<std::thread> threads;
    for (int n = 0; n < 8; ++n)
        threads.emplace_back([n] {
            for (;;) {
                if (n % 2) std::thread(burn, 100us).join();
                burn(100us);
                kill(getpid(), SIGURG);
            }
        });
    say("ready");
    for (auto& thread : threads) thread.join();
    return 0;
}

// --- traps ---------------------------------------------------------------------------------------

// Traps of its own, with a handler: each must arrive once, with its own information.
int own_traps(const char* also) {
    // Blocked traps are a matter of their own: the kernel then takes the handler away.
    handle(SIGTRAP, SA_NODEFER);
    asm volatile("int3");
    expect(info_count == 1 && last_info.si_code == SI_KERNEL, "int3");
    raise(SIGTRAP);
    expect(info_count == 2 && last_info.si_code == SI_TKILL, "raise");
    sigqueue(getpid(), SIGTRAP, {.sival_int = 77});
    expect(info_count == 3 && last_info.si_code == SI_QUEUE && last_info.si_value.sival_int == 77,
           "sigqueue");
    if (std::string_view(also) == "int1") {
        asm volatile(".byte 0xf1");
        expect(info_count == 4 && last_info.si_code == TRAP_BRKPT, "int1");
    }
    return verdict();
}

// Sleeps in a call that would show an EINTR, then in one that the kernel restarts, until asked.
int sleep_long(const char*) {
    signal(SIGTERM, on_term);
    say("ready");
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    while (!stop_requested) {
        epoll_event event;
        const int result = epoll_wait(epoll, &event, 1, 500);
        if (result != 0 && !stop_requested) surprise("epoll_wait", result);
    }
    return verdict();
}

// A stack of known depth, and registers with known contents in an endless loop.
[[gnu::noinline]] void deepest() {
    say("ready");
    if (__builtin_cpu_supports("avx"))
        asm volatile(
            "mov $0x0123456789abcdef, %%rax\n"
            "vmovq %%rax, %%xmm9\n"
            "vpermilpd $0, %%xmm9, %%xmm9\n"
            "vinsertf128 $1, %%xmm9, %%ymm9, %%ymm9\n" ::
                : "rax", "xmm9");
    asm volatile(
        "mov $0x0123456789abcdef, %%rax\n"
        "movq %%rax, %%xmm8\n"
        "mov $0x1122334455667788, %%r12\n"
        "1: jmp 1b\n" ::
            : "rax", "r12", "xmm8");
}
[[gnu::noinline]] void recurse(int depth) {
    if (depth == 0)
        deepest();
    else
        recurse(depth - 1);
    asm volatile("");
}
int stack(const char* depth) {
    recurse(std::atoi(depth));
    return 0;
}

// Asks for megabytes of random bytes, so many times, once it got a SIGUSR1. No signal comes then.
std::atomic<bool> may_begin{false};
int whole_calls(const char* times) {
    signal(SIGUSR1, [](int) { may_begin = true; });
    say("ready");
    while (!may_begin) {
    }
    std::vector<char> random((1 << 25) - 1);  // in one call some kernels give no more
    for (int i = atoi(times); i > 0; --i)
        for (const bool again : {false, true}) {
            const auto size = random.size() - again;
            const auto got = getrandom(random.data(), size, 0);
            if (got != static_cast<ssize_t>(size)) surprise("getrandom", got);
        }
    return verdict();
}

struct Scenario {
    const char* name;
    int (*run)(const char*);
};

constexpr Scenario scenarios[] = {
    {"exit", exit_with},
    {"kill-self", kill_self},
    {"segfault", segfault},
    {"surroundings", surroundings},
    {"queued-values", queued_values},
    {"count", count},
    {"spin", spin},
    {"atomic-wait", atomic_wait},
    {"children-end", children_end},
    {"disturbed-timeouts", disturbed_timeouts},
    {"threads-that-sleep", threads_that_sleep},
    {"run-children", run_children},
    {"shares-memory", shares_memory},
    {"storm", storm},
    {"breed", breed},
    {"exec-from-thread", exec_from_thread},
    {"exec-again", exec_again},
    {"leader-exits-first", leader_exits_first},
    {"leader-exits-and-others-run", leader_exits_and_others_run},
    {"hectic", hectic},
    {"own-traps", own_traps},
    {"sleep-long", sleep_long},
    {"stack", stack},
    {"whole-calls", whole_calls},
};

}  // namespace

int main(int count_of_arguments, char** arguments) {
    const std::string name = count_of_arguments > 1 ? arguments[1] : "";
    raise(SIGURG);  // ignored; tells a tracer that the scenario begins
    for (const auto& scenario : scenarios)
        if (name == scenario.name) return scenario.run(count_of_arguments > 2 ? arguments[2] : "0");
    return 2;
}
