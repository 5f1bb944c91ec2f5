// How far apart two accesses may be and still meet in the processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shadowprof::profile::tuning {

// A store that so many others followed has left the store buffer for the cache: 56 are in it on
// Intel's processors since 2015, 64 on AMD's Zen 3 and 4, 72 and more on later ones.
inline constexpr std::size_t stores_in_flight = 64;
// Two instructions with so many between them are not in flight together: reorder buffers hold 224
// to 512, and on the machines that we measured nothing is lost from 128 on (hazard_costs.h).
inline constexpr std::uint64_t instructions_in_flight = 224;
// Bytes. The processor compares the addresses of loads with those of stores modulo this first.
inline constexpr std::uint64_t aliasing_distance = 4096;

}  // namespace shadowprof::profile::tuning
