// The tuning constants of reports: value and unit, what each does, and why it is so. shadowprof(1)
// has those of findings, too. Columns and lines of a layout are where it is made.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shadowprof::report::tuning {

// ---- What is known (views/certainty.h)

// Shares that are known to ± this can be acted on; beyond the second, tables of shares say nothing,
// and what is told in their place has at least the third of the program for sure.
inline constexpr double known_well = 0.05, known_badly = 0.2, least_certain = 0.05;
// So many of these are told.
inline constexpr std::size_t most_certain_facts = 5;
// Advice: nobody takes a million times as many samples, or spends more per cent than this; and
// after fewer samples it is not foretold how long mode full takes.
inline constexpr double most_times_as_many = 1e6, most_overhead_advised = 20;
inline constexpr std::uint64_t fewest_samples_to_foretell = 5;
// Mode full: the code cache takes 1.2 to 2.6 times the program's time; what is digested beside it
// holds it up by so many seconds for each call, and for each block, of which one in 32 has its
// values captured. Measured with python3 and xz, and the default types.
inline constexpr double times_in_cache = 2, seconds_of_call = 33e-9, seconds_of_block = 2.1e-9;

// ---- Time at places (views/stack_time.h, opportunities/evidence.h)

// Looks before shares of time say something, and before a finding is told by them.
inline constexpr std::uint64_t least_looks = 50, least_looks_for_findings = 100;

// ---- Differences (diff/)

// Samples on either side, below which nothing is said to have changed: intervals of so few are not
// to be relied on. And baselines that show how much runs of an unchanged program differ.
inline constexpr double fewest_samples_compared = 30;
inline constexpr std::size_t enough_baselines = 5;
// The intervals in profiles are 95 % intervals; a difference is believed at 99.9 %.
inline constexpr double normal_quantile = 3.2905;
inline constexpr double widened = normal_quantile / 1.95996;
inline constexpr double least_chance = 0.001;
// Shares of values must be so far apart, and their intervals by so much of their widths: 95 %
// becomes 99.9 %.
inline constexpr double least_change_of_value = 0.05, beyond_interval = 0.68;

// ---- Accuracy (compare/accuracy.h), as the literature has it: the hottest twentieth of the paths,
// and what makes up nine tenths of all events.
inline constexpr std::uint64_t one_path_of = 20;
inline constexpr std::uint64_t top_tenths = 9, tenths = 10;

// ---- Findings (opportunities/)

inline constexpr double least_touched = 0.01;           // of all instructions
inline constexpr std::uint64_t least_executions = 100;  // below, a share says little
inline constexpr std::uint64_t least_samples = 5;    // that saw the place, and if they are unequal
inline constexpr double least_equal_samples = 3;     // as many equal ones as would say as much
inline constexpr double least_argument_share = 0.6;  // of calls that pass the same value
inline constexpr double least_value_share = 0.9;     // of loads that yield the same value
inline constexpr double least_target_share = 0.8;    // of indirect calls with the same target
inline constexpr double least_taken_share = 0.9;     // of a forward branch, to be laid out anew
inline constexpr double least_divisor_share = 0.9;   // of divisions with the same divisor
inline constexpr double surely_a_power = 0.35;  // … that are by powers of two: five samples agree
inline constexpr double least_unchanged_share = 0.99;  // of loads, to count as never changing
inline constexpr double small_function = 30;          // instructions a call: small enough to inline
inline constexpr double longest_specialised = 20000;  // instructions a call
inline constexpr double instructions_in_a_division = 20;
inline constexpr std::uint64_t least_timed_loads = 30;
inline constexpr double least_lookup_share = 0.02;  // of the time, in an ordered tree
inline constexpr double least_spins = 16;           // of a waiting loop, each time
inline constexpr double instructions_in_a_pause = 50;
inline constexpr double instructions_in_a_lock = 50;
inline constexpr std::uint64_t small_write = 512;  // bytes
inline constexpr double most_regular = 0.5;      // of a stream's references, to count as irregular
inline constexpr double least_wait_ns = 10;      // a load's mean: more than the near caches take
inline constexpr double least_far_share = 0.05;  // of a load's data, beyond L2
inline constexpr double instructions_in_a_nanosecond = 3;
inline constexpr double longest_small_write = 5000;      // nanoseconds: it may have written much
inline constexpr std::uint64_t longest_spin_loop = 160;  // bytes

}  // namespace shadowprof::report::tuning
