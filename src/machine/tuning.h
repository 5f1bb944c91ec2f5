// The tuning constants of this room: what each does, and how its value was found. Measurements are
// in docs/results/cost.md and docs/results/fork.md unless something else is named.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace shadowprof::machine::tuning {

// --- prices that are kept (host_prices.cpp) ------------------------------------------------------

// Seconds after which they are measured again: to measure them is half of what a run of `true`
// costs (bench/start), and what else runs on the machine that lends us ours may change from day to
// day.
inline constexpr std::int64_t prices_grow_old = 24 * 3600;

// --- prices of forks and page copies (host_prices.cpp) -------------------------------------------

// Pages that are written to in order to measure a copy. 1024, and their copies, are more than a
// core's own caches hold, as are most programs' pages when they are written. Where a page costs
// more than `dear_page` anyway, caches do not matter, and so many would take a tenth of a second.
inline constexpr std::size_t pages_to_copy = 1024, pages_to_copy_where_dear = 256;
inline constexpr Seconds dear_page{5e-6};
// Bytes that a program has in its caches and that copies displace while they are measured.
inline constexpr std::size_t working_set = 1u << 20;
// A copy of a page that costs more than this makes page faults dear: then pages are copied for
// replicas beforehand, and stops are taken to cost what they do on such hosts. Elsewhere a copy
// costs 0.5 to 2.5 µs, on hosts with page tables of their own 14 to 22.
inline constexpr Seconds dear_copy{10e-6};
// The least that the intermediary of a fork costs: two wake-ups and an exit. Under a hypervisor for
// which two processors on the same page tables are dear it is three times that (bench/fork).
inline constexpr Seconds least_intermediary{130e-6};
inline constexpr int tries_of_intermediary = 8;
// What forks and copies are taken to cost where they cannot be measured, and a fork at least.
inline constexpr Seconds usual_copy{2e-6}, usual_aftermath{0.8e-6}, usual_fork{60e-6};
// To copy one page table, of 512 pages, in the thread's own time in fork(2): a fork of 800 MB in
// small pages took 12 ms.
inline constexpr Seconds of_page_table{29e-6};
// The part of its pages that a program is expected to write to while a replica lives, as long as no
// fork has shown it. It decides how long a program with much memory waits for its first replica.
inline constexpr double written_after_fork = 0.5;

// --- fresh pages (host_charges.cpp) --------------------------------------------------------------

// What a page costs that nobody has used for long is tried so often, with so many pages of those
// kept.
inline constexpr Seconds between_fresh_pages{3};
inline constexpr std::size_t fresh_pages_a_try = 16, fresh_pages_kept = 1024;

// --- stops that are passed on (host_prices.cpp) --------------------------------------------------

// The child that measures stops computes for so long between two of them: briefly, and so long that
// we sleep meanwhile. (A Linux guest looks for work for 0.2 ms before it halts its processor.)
inline constexpr Seconds between_early_stops{20e-6}, between_late_stops{400e-6};
inline constexpr std::size_t early_stops = 12, late_stops = 6;
// A stop so long after the last one is taken for a late one.
inline constexpr Seconds stop_is_late{100e-6};
// Where stops cannot be measured, and what one costs at most: that somebody had to wait for a
// processor while it was measured is not the price.
inline constexpr Seconds usual_stop{45e-6}, most_of_stop{100e-6};

// --- looks by the clock (host_prices.cpp) ------------------------------------------------------

// So often our own thread is looked at, for so long, to see what it loses by that: 2 to 4 µs on
// bare metal, 50 in a virtual machine for which timers are dear.
inline constexpr std::uint64_t between_own_looks = 300'000;  // nanoseconds
inline constexpr Seconds own_looks{4e-3};
// What is less is no look.
inline constexpr Seconds least_of_look{500e-9};
// What is lost later, when caches are not as they were.
inline constexpr Seconds after_look{1e-6};

// --- processor time (processor_time.h) -----------------------------------------------------------

// How much a program computes is an average over about so many stops.
inline constexpr double looks_at_computing = 8;
// The kernel counts in ticks of some 10 ms: in so much time they say something.
inline constexpr std::chrono::milliseconds between_looks_at_processors{250};
// … and sooner at first, for until then we may take a processor that somebody needs.
inline constexpr std::chrono::milliseconds first_look_at_processors{50};

}  // namespace shadowprof::machine::tuning
