#pragma once

#include <chrono>

namespace shadowprof::addon::tuning {

// A module that has computed for so long without progress loops for ever. Each step of progress is
// some hundred events, which take far less than a millisecond.
inline constexpr std::chrono::seconds longest_step{3};
// … or has waited for so long: for a lock that nobody gives back. Longer, because on a busy machine
// a process may not run for seconds.
inline constexpr std::chrono::seconds longest_wait{15};
// How often that is looked at while a module is waited for.
inline constexpr std::chrono::milliseconds between_looks{100};

// Of a module: what is beyond is counted as unknown.
inline constexpr unsigned most_entries = 1'000'000;

}  // namespace shadowprof::addon::tuning
