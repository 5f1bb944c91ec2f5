#include "machine/birth_prices.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/page.h"
#include "machine/processor_time.h"
#include "ptrace/die_with.h"
#include "ptrace/tracer.h"

namespace shadowprof::machine {

namespace {

constexpr std::size_t cache_line = 64;
// More than a core's own caches hold, as are most programs' pages when they are written. Where a
// page costs that much anyway, caches do not matter, and fewer tell as well: so many would take a
// tenth of a second.
constexpr std::size_t many_pages = 2048, few_pages = 256;
constexpr Seconds of_dear_page{5e-6};
// The replica is the child of a child, which the thread waits for: two wake-ups and an exit, at
// least. Under a hypervisor for which two processors on the same page tables are dear it is three
// times that.
constexpr Seconds of_one_between{130e-6};

// What a program has in its caches, which copies displace.
constexpr std::size_t working_set = 1u << 20;

// Writes to each page, and between two of them reads some of the working set. Of processor time:
// others that compute meanwhile do not make it dearer.
Seconds write_to(volatile char* memory, std::size_t pages) {
    static std::vector<char> others(working_set, 1);
    const volatile char* const used = others.data();
    constexpr std::size_t lines = working_set / cache_line, reads = page_size / cache_line,
                          stride = 7919;
    std::size_t next = 0;
    const auto began = computed(CLOCK_THREAD_CPUTIME_ID);
    for (std::size_t n = 0; n < pages; ++n) {
        memory[n * page_size] = 1;
        for (std::size_t m = 0; m < reads; ++m) {
            next = (next + stride + static_cast<std::size_t>(used[next * cache_line]) - 1) % lines;
        }
    }
    return computed(CLOCK_THREAD_CPUTIME_ID) - began;
}

// With a child that shares them, alive or dead.
std::optional<Seconds> write_to_shared(volatile char* memory, std::size_t pages, bool alive,
                                       Seconds& forked) {
    const auto began = computed(CLOCK_THREAD_CPUTIME_ID);
    const pid_t us = getpid(), child = fork();
    forked = computed(CLOCK_THREAD_CPUTIME_ID) - began;
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

// A process that shares our memory, as births have it (inject/fork_stub.cpp).
struct OneBetween {
    static constexpr std::size_t stack_size = 1 << 16;
    pid_t pid = 0;  // until it has ended
    pid_t newborn = -1;
    alignas(16) std::array<std::byte, stack_size> stack;

    static int fork_and_end(void* self) {
        const auto newborn = static_cast<pid_t>(
            syscall(SYS_clone, CLONE_PARENT | CLONE_FILES, nullptr, nullptr, nullptr, 0));
        if (newborn == 0) syscall(SYS_exit_group, 0);
        static_cast<OneBetween*>(self)->newborn = newborn;
        return 0;
    }
};

// By the clock: where the thread is when it waits is not what matters.
std::optional<Seconds> fork_by_one_between() {
    const auto between = std::make_unique<OneBetween>();
    constexpr int flags = CLONE_VM | CLONE_FILES | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    const auto began = Clock::now();
    const pid_t pid =
        clone(OneBetween::fork_and_end, between->stack.data() + OneBetween::stack_size, flags,
              between.get(), &between->pid, nullptr, &between->pid);
    while (pid > 0 && __atomic_load_n(&between->pid, __ATOMIC_ACQUIRE) != 0) sched_yield();
    const Seconds took = Clock::now() - began;
    for (const pid_t child : {pid, between->newborn})
        if (child > 0) waitpid(child, nullptr, __WALL);
    if (pid <= 0 || between->newborn <= 0) return {};
    return took;
}

Seconds fork_by_itself() {
    const auto began = Clock::now();
    const pid_t child = fork();
    if (child == 0) _exit(0);
    const Seconds took = Clock::now() - began;
    if (child > 0) waitpid(child, nullptr, __WALL);
    return took;
}

Seconds measure_one_between() {
    constexpr int tries = 8;
    std::optional<Seconds> with, without;
    for (int n = 0; n < tries; ++n) {
        const auto by_itself = fork_by_itself();
        const auto by_another = fork_by_one_between();
        without = std::min(by_itself, without.value_or(by_itself));
        if (by_another) with = std::min(*by_another, with.value_or(*by_another));
    }
    return with ? std::max(of_one_between, *with - *without) : of_one_between;
}

BirthPrices measure() {
    constexpr BirthPrices usual{Seconds{2e-6}, Seconds{0.8e-6}, Seconds{60e-6}, of_one_between};
    constexpr std::size_t size = many_pages * page_size;
    auto* const memory = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) return usual;
    madvise(memory, size, MADV_NOHUGEPAGE);
    const bool are_dear = write_to(memory, few_pages) > few_pages * of_dear_page;
    const auto pages = are_dear ? few_pages : many_pages;
    write_to(memory, pages);
    Seconds forked{}, forked_again{};
    const auto shared = write_to_shared(memory, pages, true, forked);
    const auto left = write_to_shared(memory, pages, false, forked_again);
    const auto own = write_to(memory, pages);
    munmap(memory, size);
    if (!shared || !left) return usual;
    const Seconds of_tables = price_of_page_tables(static_cast<double>(pages));
    const auto of_each = [&](Seconds all) {
        return std::max(Seconds{0}, all - own) / static_cast<double>(pages);
    };
    return {of_each(*shared), of_each(*left),
            std::max(usual.of_fork, std::min(forked, forked_again) - of_tables),
            measure_one_between()};
}

}  // namespace

Seconds price_of_page_tables(double pages) {
    // The thread's own time in fork(2), in which nobody holds it: 800 MB in small pages took 12 ms.
    constexpr Seconds of_one{29e-6};
    constexpr double pages_in_one = 512;
    return pages / pages_in_one * of_one;
}

bool faults_are_dear() {
    constexpr Seconds dear{10e-6};
    return birth_prices().of_copy > dear;
}

const BirthPrices& birth_prices() {
    static const BirthPrices measured = measure();
    return measured;
}

}  // namespace shadowprof::machine
