// Facts of the processor that more than one room needs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shadowprof {

// Bytes of a cache line, in all processors so far.
inline constexpr std::size_t cache_line = 64;

// Of rflags, those that are a state of the processor: it traps behind each instruction, which is a
// SIGTRAP; string instructions go downwards; accesses that are not aligned fault.
inline constexpr std::uint32_t trap_flag = 1u << 8, direction_flag = 1u << 10,
                               alignment_check_flag = 1u << 18;

}  // namespace shadowprof
