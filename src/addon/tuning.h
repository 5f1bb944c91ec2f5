#pragma once

#include <chrono>
#include <cstdint>

namespace shadowprof::addon::tuning {

// A module that has computed for so long without progress loops for ever. Each step of progress is
// some hundred events, which take far less than a millisecond.
inline constexpr std::chrono::seconds longest_step{3};
// … or has waited for so long: for a lock that nobody gives back. Longer, because on a busy machine
// a process may not run for seconds.
inline constexpr std::chrono::seconds longest_wait{15};
// How often that is looked at while a module is waited for.
inline constexpr std::chrono::milliseconds between_looks{100};

// How long a module may take to end that has closed its connection.
inline constexpr std::chrono::seconds longest_end{2};
// Of address space, beyond what shadowprof has. What is counted takes some hundred MB at most.
inline constexpr std::uint64_t most_memory = std::uint64_t{1} << 30;

// Of a module: what is beyond is counted as unknown.
inline constexpr unsigned most_entries = 1'000'000;

}  // namespace shadowprof::addon::tuning
