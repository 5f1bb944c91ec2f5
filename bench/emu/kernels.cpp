#include "kernels.h"

#include <array>
#include <cstring>

namespace shadowprof::bench {

namespace {

// Tables and loads that depend on each other.
std::uint64_t crc(std::uint64_t rounds) {
    static std::array<std::uint32_t, 256> table;
    for (std::uint32_t i = 0; i < 256; ++i) {
        auto c = i;
        for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? 0xedb88320u : 0);
        table[i] = c;
    }
    std::uint32_t sum = ~0u;
    for (std::uint64_t i = 0; i < rounds; ++i) sum = table[(sum ^ i) & 0xff] ^ (sum >> 8);
    return sum;
}

// Arithmetic in registers.
std::uint64_t collatz(std::uint64_t rounds) {
    std::uint64_t steps = 0;
    for (std::uint64_t start = 1; steps < rounds; ++start)
        for (auto n = start; n != 1; ++steps) n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

// Stores, and branches that are hard to foretell.
std::uint64_t sort(std::uint64_t rounds) {
    static std::array<std::uint32_t, 1024> numbers;
    std::uint64_t sum = 0;
    std::uint32_t seed = 1;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        for (auto& n : numbers) n = seed = seed * 1664525u + 1013904223u;
        for (std::size_t gap = 512; gap > 0; gap /= 2) {
            for (std::size_t i = gap; i < numbers.size(); ++i) {
                const auto value = numbers[i];
                auto at = i;
                for (; at >= gap && numbers[at - gap] > value; at -= gap)
                    numbers[at] = numbers[at - gap];
                numbers[at] = value;
            }
        }
        sum += numbers[512];
    }
    return sum;
}

// Calls and returns.
[[gnu::noinline]] std::uint64_t fibonacci_of(std::uint64_t n) {
    return n < 2 ? n : fibonacci_of(n - 1) + fibonacci_of(n - 2);
}
std::uint64_t fibonacci(std::uint64_t rounds) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < rounds; ++i) sum += fibonacci_of(18);
    return sum;
}

// Indirect branches: an interpreter of its own.
std::uint64_t machine(std::uint64_t rounds) {
    enum Operation : std::uint8_t { add, multiply, shift, mix, loop };
    static constexpr std::uint8_t program[] = {add,   mix, shift, add,      multiply, mix,
                                               shift, add, mix,   multiply, shift,    loop};
    std::uint64_t a = 1, b = 2;
    for (std::uint64_t at = 0; rounds > 0;) {
        switch (program[at++]) {
            case add:
                a += b + 7;
                break;
            case multiply:
                b = b * a + 3;
                break;
            case shift:
                a = a >> 3 | b << 5;
                break;
            case mix:
                b ^= a;
                break;
            default:
                at = 0;
                --rounds;
                break;
        }
    }
    return a + b;
}

constexpr Kernel all[] = {{"crc", crc},
                          {"collatz", collatz},
                          {"sort", sort},
                          {"fibonacci", fibonacci},
                          {"machine", machine}};

}  // namespace

std::span<const Kernel> kernels() {
    return all;
}

const Kernel* find_kernel(std::string_view name) {
    for (const auto& kernel : all)
        if (kernel.name == name) return &kernel;
    return nullptr;
}

}  // namespace shadowprof::bench
