#include "machine/core_sharing.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "sampling/options.h"

namespace shadowprof::machine {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int times = 500;

// Each waits for the one before it: one a cycle, whatever the other thread does.
void add_one_after_the_other() {
    int left = times;
    asm volatile(
        "1: .rept 24\n"
        "add %%rbx, %%rax\n"
        ".endr\n"
        "dec %0\n"
        "jnz 1b"
        : "+r"(left)
        :
        : "rax", "cc");
}

// The least of some, for interrupts.
template <typename Work>
Seconds time_of(const Work& work) {
    auto least = Seconds::max();
    for (int attempt = 0; attempt < 4; ++attempt) {
        const auto begun = Clock::now();
        work();
        least = std::min<Seconds>(least, Clock::now() - begun);
    }
    return least;
}

}  // namespace

void add_side_by_side(int times_left) {
    asm volatile(
        "1: .rept 16\n"
        "add %%rbx, %%rax\n add %%rbx, %%rcx\n add %%rbx, %%rdx\n"
        "add %%rbx, %%rsi\n add %%rbx, %%rdi\n add %%rbx, %%r8\n"
        ".endr\n"
        "dec %0\n"
        "jnz 1b"
        : "+r"(times_left)
        :
        : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "cc");
}

// Four adders have all processors of the last ten years, or more.
bool core_is_shared() {
    constexpr double side_by_side = 4, most_if_shared = 0.7 * side_by_side;
    const double additions = 16 * 6, cycles = 24;
    const auto cycle = time_of(add_one_after_the_other) / cycles;
    return additions * cycle < most_if_shared * time_of([] { add_side_by_side(times); });
}

}  // namespace shadowprof::machine
