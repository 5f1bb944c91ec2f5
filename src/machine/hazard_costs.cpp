#include "machine/hazard_costs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>

namespace shadowprof::machine {

namespace {

using Clock = std::chrono::steady_clock;

// 1 to 20 µs a try, 2 to 4 ms for all loops. The differences were the same to 5 % from run to run,
// also on a machine that was otherwise busy.
constexpr std::uint64_t rounds_a_try = 1000;
constexpr int tries = 12;
using Loop = void (*)(std::uint64_t rounds, char* memory);

// A loop with this body. `%1` is the memory, `%2` a register that is 0 and stays 0: what a load
// yields goes through it, so that the next round waits for it, as a program waits for what it
// loads. The fixed length of the body keeps loops that are compared alike in the decoder.
#define SHADOWPROF_LOOP(body)                                                             \
    [](std::uint64_t rounds, char* memory) {                                              \
        std::uint64_t carried = 0;                                                        \
        asm volatile(".p2align 6\n1:\n" body "dec %0\n\tjnz 1b\n"                         \
                     : "+r"(rounds), "+r"(memory), "+r"(carried)::"rcx", "cc", "memory"); \
    }
#define SHADOWPROF_FILL(instructions) ".rept " #instructions "\n\tnop\n\t.endr\n\t"
#define SHADOWPROF_CARRY "and $0, %%rcx\n\tadd %%rcx, %2\n\t"

struct Pair {
    Loop with, without;
};

// Four bytes are written and eight are read.
#define SHADOWPROF_FORWARDING(between)                                                            \
    Pair {                                                                                        \
        SHADOWPROF_LOOP(                                                                          \
            "mov %k2, (%1)\n\t" SHADOWPROF_FILL(between) "mov (%1), %%rcx\n\t" SHADOWPROF_CARRY), \
            SHADOWPROF_LOOP("mov %2, (%1)\n\t" SHADOWPROF_FILL(                                   \
                between) "mov (%1), %%rcx\n\t" SHADOWPROF_CARRY)                                  \
    }
// The load's address waits for the round before, as the store's data does.
#define SHADOWPROF_ALIASING(between)                                    \
    Pair {                                                              \
        SHADOWPROF_LOOP("mov %2, (%1)\n\t" SHADOWPROF_FILL(             \
            between) "mov 4096(%1,%2), %%rcx\n\t" SHADOWPROF_CARRY),    \
            SHADOWPROF_LOOP("mov %2, (%1)\n\t" SHADOWPROF_FILL(         \
                between) "mov 4160(%1,%2), %%rcx\n\t" SHADOWPROF_CARRY) \
    }
#define SHADOWPROF_LOAD(at) SHADOWPROF_LOOP("mov " #at "(%1,%2), %%rcx\n\t" SHADOWPROF_CARRY)
#define SHADOWPROF_STORE(at) SHADOWPROF_LOOP("mov %2, " #at "(%1)\n\t")
// One after the other, in lines of their own.
#define SHADOWPROF_STORES(a, b, c, d)                                         \
    SHADOWPROF_LOOP("mov %2, " #a "(%1)\n\tmov %2, " #b "(%1)\n\tmov %2, " #c \
                    "(%1)\n\tmov %2, " #d "(%1)\n\t")

constexpr std::array<Pair, HazardCosts::distances.size()> forwarding{
    SHADOWPROF_FORWARDING(0), SHADOWPROF_FORWARDING(16), SHADOWPROF_FORWARDING(32),
    SHADOWPROF_FORWARDING(64), SHADOWPROF_FORWARDING(128)};
constexpr std::array<Pair, HazardCosts::distances.size()> aliasing{
    SHADOWPROF_ALIASING(0), SHADOWPROF_ALIASING(16), SHADOWPROF_ALIASING(32),
    SHADOWPROF_ALIASING(64), SHADOWPROF_ALIASING(128)};
constexpr Pair split_load{SHADOWPROF_LOAD(60), SHADOWPROF_LOAD(48)};
constexpr Pair page_split_load{SHADOWPROF_LOAD(4092), SHADOWPROF_LOAD(48)};
constexpr double stores_a_round = 4;
constexpr Pair split_store{SHADOWPROF_STORES(60, 124, 188, 252),
                           SHADOWPROF_STORES(48, 112, 176, 240)};
constexpr Pair page_split_store{SHADOWPROF_STORE(4092), SHADOWPROF_STORE(48)};

// Nanoseconds a round. The least is what it takes undisturbed.
double time_of(Loop loop, char* memory) {
    auto least = Clock::duration::max();
    for (int i = 0; i < tries; ++i) {
        const auto began = Clock::now();
        loop(rounds_a_try, memory);
        least = std::min(least, Clock::now() - began);
    }
    return std::chrono::duration<double, std::nano>(least).count() /
           static_cast<double>(rounds_a_try);
}

double cost_of(const Pair& pair, char* memory, double hazards_a_round = 1) {
    const auto without = time_of(pair.without, memory);
    return std::max(0.0, time_of(pair.with, memory) - without) / hazards_a_round;
}

}  // namespace

double HazardCosts::of(Hazard kind, std::uint64_t distance) const {
    const auto& costs = nanoseconds[static_cast<std::size_t>(kind)];
    for (std::size_t i = 1; i < distances.size(); ++i) {
        if (distance > distances[i]) continue;
        const auto from = distances[i - 1];
        const auto part = static_cast<double>(distance - std::min<std::uint64_t>(distance, from)) /
                          static_cast<double>(distances[i] - from);
        return std::lerp(costs[i - 1], costs[i], part);
    }
    return costs.back();
}

HazardCosts measure_hazard_costs() {
    alignas(4096) static char memory[3 * 4096];
    // So that the pages are there, and the processor runs at its usual speed.
    for (std::size_t at = 0; at < sizeof memory; at += 64) memory[at] = 0;
    time_of(forwarding[0].without, memory);
    HazardCosts costs;
    const auto measured = [&](Hazard kind) -> HazardCosts::ByDistance& {
        return costs.nanoseconds[static_cast<std::size_t>(kind)];
    };
    for (std::size_t i = 0; i < HazardCosts::distances.size(); ++i) {
        measured(Hazard::failed_forwarding)[i] = cost_of(forwarding[i], memory);
        measured(Hazard::aliasing)[i] = cost_of(aliasing[i], memory);
    }
    measured(Hazard::split_load).fill(cost_of(split_load, memory));
    measured(Hazard::page_split_load).fill(cost_of(page_split_load, memory));
    measured(Hazard::split_store).fill(cost_of(split_store, memory, stores_a_round));
    measured(Hazard::page_split_store).fill(cost_of(page_split_store, memory));
    return costs;
}

}  // namespace shadowprof::machine
