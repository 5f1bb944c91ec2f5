// Repeatable random numbers: one seed, given by --seed or drawn once, makes every random choice
// of a run. Not for secrets.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/address.h"
#include "base/wide.h"

namespace shadowprof {

// xoshiro256**; satisfies UniformRandomBitGenerator.
class Random {
  public:
    using result_type = std::uint64_t;

    explicit Random(std::uint64_t seed) {
        for (auto& word : state_) word = seed = mix_bits(seed + 1);
    }

    static constexpr result_type min() { return 0; }
    static constexpr result_type max() { return ~result_type{0}; }

    result_type operator()() {
        const auto result = rotate(state_[1] * 5, 7) * 9;
        const auto t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = rotate(state_[3], 45);
        return result;
    }

    // In [0, 1).
    double unit() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

    // In [0, bound); the bias of the multiplication is below 2^-32 for the bounds used here.
    std::uint64_t below(std::uint64_t bound) {
        return static_cast<std::uint64_t>((static_cast<Wide>((*this)()) * bound) >> 64);
    }

    bool chance(double probability) { return unit() < probability; }

    // Memoryless intervals: sampling with them cannot lock onto a rhythm of the program.
    double exponential(double mean) { return -mean * std::log1p(-unit()); }

    // An independent stream for one part of the run.
    Random fork() { return Random{(*this)()}; }

  private:
    static constexpr std::uint64_t rotate(std::uint64_t x, int k) {
        return (x << k) | (x >> (64 - k));
    }
    std::uint64_t state_[4];
};

}  // namespace shadowprof
