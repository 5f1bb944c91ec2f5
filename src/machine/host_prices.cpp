// What stops, forks, page copies and looks cost on this host, measured in processes of our own.
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/kept_files.h"
#include "base/page.h"
#include "base/x86.h"
#include "machine/host_charges.h"
#include "machine/processor_time.h"
#include "machine/tuning.h"
#include "proc/processors.h"
#include "proc/thread_clock.h"
#include "ptrace/die_with.h"

namespace shadowprof::machine {

namespace {

constexpr const char* first_line = "shadowprof-prices 1";
constexpr std::array all_prices{&HostPrices::page_copy,  &HostPrices::page_aftermath,
                                &HostPrices::fork,       &HostPrices::intermediary,
                                &HostPrices::early_stop, &HostPrices::late_stop,
                                &HostPrices::look};

// Anonymous memory; private, or shared with children.
class Mapping {
  public:
    Mapping(std::size_t size, int sharing)
        : size_(size),
          memory_(mmap(nullptr, size, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0)) {}
    ~Mapping() {
        if (*this) munmap(memory_, size_);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    explicit operator bool() const { return memory_ != MAP_FAILED; }
    void* begin() const { return memory_; }

  private:
    std::size_t size_;
    void* memory_;
};

Seconds own_time() {
    return computed(CLOCK_THREAD_CPUTIME_ID);
}

// --- page copies and forks -----------------------------------------------------------------------

// Writes to each page, and between two of them reads some of the working set. Of processor time:
// others that compute meanwhile do not make it dearer.
Seconds write_to(volatile char* memory, std::size_t pages) {
    constexpr std::size_t lines = tuning::working_set / cache_line, reads = page_size / cache_line,
                          stride = 7919;
    static std::vector<char> others(tuning::working_set, 1);
    const volatile char* const used = others.data();
    std::size_t next = 0;
    const auto began = own_time();
    for (std::size_t n = 0; n < pages; ++n) {
        memory[n * page_size] = 1;
        for (std::size_t m = 0; m < reads; ++m)
            next = (next + stride + static_cast<std::size_t>(used[next * cache_line]) - 1) % lines;
    }
    return own_time() - began;
}

// With a child that shares the pages, alive or dead. `forked`: what the fork took.
std::optional<Seconds> write_to_shared(volatile char* memory, std::size_t pages, bool alive,
                                       Seconds& forked) {
    const auto began = own_time();
    const pid_t us = getpid(), child = fork();
    forked = own_time() - began;
    if (child < 0) return {};
    if (child == 0) {
        ptrace::die_with(us);
        for (;;) pause();
    }
    const auto end = [&] {
        kill(child, SIGKILL);
        waitpid(child, nullptr, __WALL);
    };
    if (!alive) end();
    const auto took = write_to(memory, pages);
    if (alive) end();
    return took;
}

void measure_copies(HostPrices& prices) {
    const Mapping mapping{tuning::pages_to_copy * page_size, MAP_PRIVATE};
    if (!mapping) return;
    madvise(mapping.begin(), tuning::pages_to_copy * page_size, MADV_NOHUGEPAGE);
    auto* const memory = static_cast<char*>(mapping.begin());
    constexpr auto few = tuning::pages_to_copy_where_dear;
    const bool are_dear = write_to(memory, few) > few * tuning::dear_page;
    const auto pages = are_dear ? few : tuning::pages_to_copy;
    write_to(memory, pages);
    Seconds forked{}, forked_again{};
    const auto shared = write_to_shared(memory, pages, true, forked);
    const auto left = write_to_shared(memory, pages, false, forked_again);
    const auto own = write_to(memory, pages);
    if (!shared || !left) return;
    const auto of_each = [&](Seconds all) {
        return std::max(Seconds{0}, all - own) / static_cast<double>(pages);
    };
    prices.page_copy = of_each(*shared);
    prices.page_aftermath = of_each(*left);
    prices.fork = std::max(
        prices.fork, std::min(forked, forked_again) - page_tables(static_cast<double>(pages)));
}

// --- the intermediary ----------------------------------------------------------------------------

// A process that shares our memory and forks for us, as in a fork of a replica
// (inject/fork_stub.cpp).
struct Intermediary {
    static constexpr std::size_t stack_size = 1 << 16;
    pid_t pid = 0;  // until it has ended
    pid_t newborn = -1;
    alignas(16) std::array<std::byte, stack_size> stack;

    static int fork_and_end(void* self) {
        const auto newborn = static_cast<pid_t>(
            syscall(SYS_clone, CLONE_PARENT | CLONE_FILES, nullptr, nullptr, nullptr, 0));
        if (newborn == 0) syscall(SYS_exit_group, 0);
        static_cast<Intermediary*>(self)->newborn = newborn;
        return 0;
    }
};

// By the clock: where the thread is when it waits is not what matters.
std::optional<Seconds> fork_by_intermediary() {
    const auto between = std::make_unique<Intermediary>();
    constexpr int flags = CLONE_VM | CLONE_FILES | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    const auto began = Clock::now();
    const pid_t pid =
        clone(Intermediary::fork_and_end, between->stack.data() + Intermediary::stack_size, flags,
              between.get(), &between->pid, nullptr, &between->pid);
    while (pid > 0 && __atomic_load_n(&between->pid, __ATOMIC_ACQUIRE) != 0) sched_yield();
    const Seconds took = Clock::now() - began;
    for (const pid_t child : {pid, between->newborn})
        if (child > 0) waitpid(child, nullptr, __WALL);
    if (pid <= 0 || between->newborn <= 0) return {};
    return took;
}

Seconds fork_by_ourselves() {
    const auto began = Clock::now();
    const pid_t child = fork();
    if (child == 0) _exit(0);
    const Seconds took = Clock::now() - began;
    if (child > 0) waitpid(child, nullptr, __WALL);
    return took;
}

void measure_intermediary(HostPrices& prices) {
    auto with = Seconds::max(), without = Seconds::max();
    for (int n = 0; n < tuning::tries_of_intermediary; ++n) {
        without = std::min(without, fork_by_ourselves());
        with = std::min(with, fork_by_intermediary().value_or(with));
    }
    if (with != Seconds::max()) prices.intermediary = std::max(prices.intermediary, with - without);
}

// --- stops ---------------------------------------------------------------------------------------

// A child sends itself signals, at first alone, then traced.
struct SignalTimes {
    std::array<Seconds, tuning::early_stops> early;
    std::array<Seconds, tuning::late_stops> late;
};
struct Shared {
    std::atomic<bool> is_ready = false, is_traced = false;
    SignalTimes alone, traced;
};

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

void have_signals(SignalTimes& times) {
    have_signals(times.early, tuning::between_early_stops);
    have_signals(times.late, tuning::between_late_stops);
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
        auto others = all_;
        CPU_CLR(here_, &others);
        if (CPU_COUNT(&others) > 0) sched_setaffinity(0, sizeof others, &others);
    }

  private:
    int here_;
    cpu_set_t all_;
};

[[noreturn]] void be_traced(Shared& shared, pid_t by, const Apart& apart) {
    ptrace::die_with(by);
    signal(SIGUSR1, [](int) {});
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
    siginfo_t waited_for, info;
    sigset_t mask;
    user_regs_struct registers;
    while (waitid(P_PID, id, &waited_for, look) == 0) {
        sigprocmask(SIG_BLOCK, nullptr, &mask);
        waitid(P_PID, id, &waited_for, look | WNOHANG);
        int status = 0;
        if (waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status)) return;
        ::ptrace(PTRACE_GETSIGINFO, child, nullptr, &info);
        ::ptrace(PTRACE_GETREGS, child, nullptr, &registers);
        ::ptrace(PTRACE_CONT, child, nullptr, WSTOPSIG(status));
    }
}

// The least of them: in the others somebody had to wait for a processor.
Seconds price_by(std::span<const Seconds> traced, std::span<const Seconds> alone) {
    return std::min(std::ranges::min(traced) - std::ranges::min(alone), tuning::most_of_stop);
}

void measure_stops(HostPrices& prices) {
    const Mapping mapping{sizeof(Shared), MAP_SHARED};
    if (!mapping) return;
    auto& shared = *new (mapping.begin()) Shared;
    const Apart apart;
    const pid_t us = getpid(), child = fork();
    if (child == 0) be_traced(shared, us, apart);
    if (child < 0) return;
    while (!shared.is_ready) {
        if (waitpid(child, nullptr, __WALL | WNOHANG) != 0) return;
        sched_yield();
    }
    const bool is_traced = ::ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0;
    shared.is_traced = true;
    trace(child);
    const auto early = price_by(shared.traced.early, shared.alone.early),
               late = price_by(shared.traced.late, shared.alone.late);
    if (!is_traced || early <= Seconds{0} || late <= Seconds{0}) return;
    prices.early_stop = early;
    prices.late_stop = late;
}

// --- looks by the clock --------------------------------------------------------------------------

// A thread that does nothing but read the time sees how much is missing. What is longest is missing
// because of looks, but for once or twice when somebody else had the processor: so the middle one
// is taken of as many as there were looks. 0 where looks are refused.
Seconds measured_look() {
    constexpr std::uint32_t stack_size = 8192;
    proc::ThreadClock clock{{tuning::between_own_looks, stack_size, true}};
    if (!clock.watch(gettid())) return Seconds{0};
    std::vector<Clock::duration> gaps;
    const auto began = Clock::now();
    for (auto last = began; last < began + tuning::own_looks;) {
        const auto now = Clock::now();
        if (now - last >= tuning::least_of_look) gaps.push_back(now - last);
        last = now;
    }
    std::size_t looks = 0;
    clock.read([&](const auto&) { ++looks; });
    if (looks == 0 || gaps.empty()) return Seconds{0};
    std::ranges::sort(gaps, std::greater{});
    return tuning::after_look + gaps[std::min(looks, gaps.size()) / 2];
}

HostPrices measure() {
    HostPrices prices{.page_copy = tuning::usual_copy,
                      .page_aftermath = tuning::usual_aftermath,
                      .fork = tuning::usual_fork,
                      .intermediary = tuning::least_intermediary,
                      .early_stop = tuning::usual_stop,
                      .late_stop = tuning::usual_stop,
                      .look = Seconds{0}};
    measure_copies(prices);
    measure_intermediary(prices);
    measure_stops(prices);
    prices.look = measured_look();
    return prices;
}

// --- kept for the next runs ----------------------------------------------------------------------

// The kernel, and the machine that it runs on, since it began.
std::string this_boot() {
    std::ifstream file{"/proc/sys/kernel/random/boot_id"};
    std::string id;
    std::getline(file, id);
    return id;
}

// Whether there is a processor for whom we measure with. The kernel counts us, too.
bool others_leave_processors() {
    std::ifstream file{"/proc/loadavg"};
    double average = 0;
    unsigned runnable = 0;
    for (int n = 0; n < 3; ++n) file >> average;
    file >> runnable;
    return file && runnable < std::max(2u, std::thread::hardware_concurrency());
}

HostPrices measure_once_in_a_while() {
    constexpr auto* name = "prices";
    const auto boot = this_boot();
    const auto kept = read_kept_file(name, 4096);
    const bool is_recent = kept && std::time(nullptr) - kept->written < tuning::prices_grow_old;
    auto prices = is_recent ? read_prices(kept->contents, boot) : std::nullopt;
    if (!prices) {
        // What others had a part in is not to hold for a day.
        const bool is_calm = others_leave_processors();
        prices = measure();
        if (is_calm && others_leave_processors()) write_kept_file(name, written(*prices, boot));
    } else if (prices->look == Seconds{0}) {
        prices->look = measured_look();  // they may have been refused then, and not now
    }
    return *prices;
}

}  // namespace

Seconds page_tables(double pages) {
    constexpr double pages_in_a_table = 512;
    return pages / pages_in_a_table * tuning::of_page_table;
}

bool HostPrices::faults_are_dear() const {
    return page_copy > tuning::dear_copy;
}

std::string written(const HostPrices& prices, const std::string& boot) {
    auto text = fmt::format("{}\n{}\n", first_line, boot);
    for (const auto price : all_prices) text += fmt::format("{} ", (prices.*price).count());
    return text + "\n";
}

std::optional<HostPrices> read_prices(const std::string& text, const std::string& boot) {
    std::istringstream in{text};
    std::string first, of;
    std::getline(in, first);
    std::getline(in, of);
    if (first != first_line || of != boot || boot.empty()) return {};
    HostPrices prices{};
    for (const auto price : all_prices) {
        double seconds = 0;
        if (!(in >> seconds) || !(seconds >= 0)) return {};
        prices.*price = Seconds{seconds};
    }
    return prices;
}

const HostPrices& host_prices(bool may_be_kept) {
    static const HostPrices known = may_be_kept ? measure_once_in_a_while() : measure();
    return known;
}

}  // namespace shadowprof::machine
