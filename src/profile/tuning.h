// The tuning constants of profile types: value and unit, what each does, and why it is so. Most
// bound memory. Constants of a format, or of the structure of a table, are where that is.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace shadowprof::profile::tuning {

// ---- How well a profile is known (common/convergence.h)

// Before so many samples nobody can say what is usual.
inline constexpr double samples_until_usual = 30;
// How far above the usual the mean of the latest distances must be, in its standard errors, and at
// least.
inline constexpr double surprising = 4, least_surprise = 0.1;
// What old samples still weigh when the program behaves anew.
inline constexpr double weight_of_old_samples = 0.1;
// Bytes of code in a bin: functions that follow each other in a file are in bins of their own.
inline constexpr std::uint64_t bytes_together = 256;

// ---- Counting segments (common/segment_counter.h)

// Segments of a lane. Lanes that lie a page apart would all be in the same few places of the first
// cache, which has fewer of them than there are lanes.
inline constexpr std::size_t shortest_lane = 64, longest_lane = 1008;
// Few transitions were taken if so many are known for each, in so many segments for each one known:
// what does not occur in a brief sample is not forgotten.
inline constexpr std::size_t known_for_one_taken = 4, segments_for_one_known = 8;

// ---- State of threads, rules, modules

// Locks that a thread holds at a time; of more, the first are forgotten.
inline constexpr std::size_t most_locks_held = 1000;
// Bursts of a rule that are remembered, and values of all rules together: as many as of all
// operands in the value profile.
inline constexpr std::size_t most_bursts_kept = 4096, most_values_listed = 500'000;
// Of a module, so many at a time: an event is small, a message is not.
inline constexpr std::size_t events_in_a_message = 256;

// ---- Values

// A value or step is noted that has this part of an operand's executions; the page shows so many
// values of one; a share that is known no better than ± the last is no news.
inline constexpr double values_worth_a_note = 0.05;
inline constexpr std::size_t most_values_shown = 12;
inline constexpr double worst_reach_of_value = 0.25;

// ---- Calling contexts

// Frames of a stack, beyond which recursion forgets some in the middle; and stacks that a thread
// has left and may come back to.
inline constexpr std::size_t most_frames_walked = 1u << 16, most_stacks_left = 16;
// Tail calls in a row before frames are replaced, and instructions of a stub that only jumps.
inline constexpr std::size_t longest_tail = 2, longest_stub = 3;

// ---- Time, timeline, requests

// Stacks that are told apart. Where there are more, all but half as many are told by their
// innermost function.
inline constexpr std::size_t most_stacks = 3000;
// Told of the time in the kernel: so many calls, if they have this part of all time; and of
// waiting, states that have a hundredth.
inline constexpr std::size_t most_calls_told = 3;
inline constexpr double part_of_time = 0.01;
inline constexpr std::uint64_t least_part_of_waiting = 100;
// Columns; entries, as many as hotlists have by default; and those of them that are told alone.
inline constexpr std::size_t most_columns = 100, most_timeline_entries = 1000,
                             most_told_alone = 800;
// Two neighbours are different where chance would hardly explain it: by so many standard deviations
// of what it does. Functions of which fewer looks than this are expected count together.
inline constexpr double certainly_different = 4.5, fewest_looks_expected = 3;
inline constexpr std::size_t most_phases = 12;
// A function is told that has this part of a phase.
inline constexpr double part_of_phase = 0.03;
// Looks are not exact: this part of a process's time counts as all of it.
inline constexpr double all_but_little = 0.8;
// Requests that are told apart while profiling, others by their attributes alone; in the profile;
// and values of an attribute there. What is left are the ones with most time.
inline constexpr std::size_t most_requests = 20'000, most_spans = 1000;
inline constexpr std::size_t most_values_of_attribute = 100;
// Tables are of this many attributes at most; spans have one if they are few that last, and
// functions are told if they have this part of their request.
inline constexpr std::size_t most_attributes_shown = 4, most_spans_shown = 40, looks_to_a_span = 10;
inline constexpr std::size_t most_functions_of_request = 3;
inline constexpr double part_of_request = 0.05;

// ---- Latencies, hazards

// Lines of a cache that is simulated whole; of larger ones a part is. Ways where the processor does
// not say, and of its TLBs.
inline constexpr std::uint64_t most_lines_simulated = 1u << 18;
inline constexpr std::uint32_t usual_ways = 16, ways_of_tlb = 8;
// Lines. A gigabyte that is walked around has one of 64 lines marked: recaptures enough. So many
// must have been likely for their absence to say something.
inline constexpr std::size_t most_marked_lines = 1u << 18;
inline constexpr std::uint64_t telling_recaptures = 8;
// Addresses of a load before a pattern is told.
inline constexpr std::uint64_t fewest_addresses = 16;
// A share that is known no better than ± this is little to act on, and nothing.
inline constexpr double reach_worth_a_warning = 0.25, reach_that_says_nothing = 0.4;
// A store that so many others followed has left the store buffer for the cache: 56 are in it on
// Intel's processors since 2015, 64 on AMD's Zen 3 and 4, 72 and more on later ones.
inline constexpr std::size_t stores_in_flight = 64;
// Two instructions with so many between them are not in flight together: reorder buffers hold 224
// to 512, and on the machines that we measured nothing is lost from 128 on (hazard_costs.h).
inline constexpr std::uint64_t instructions_in_flight = 224;
// Bytes. The processor compares the addresses of loads with those of stores modulo this first.
inline constexpr std::uint64_t aliasing_distance = 4096;

// ---- Streams, sharing

// References. Two or three in a row come again in any loop, and nothing follows from it.
inline constexpr std::size_t shortest_stream = 4;
// Pairs of references that are told apart, and the hottest streams, which are handed over.
inline constexpr std::size_t most_references = 1u << 18, most_streams = 1u << 14;
// A stream comes again so often on average, and goes on in one way nearly always.
inline constexpr double least_recurrences = 3, nearly_always = 0.9;
// A window lasts so long at least. Beyond the longest it does not wait for threads that may sleep.
inline constexpr std::chrono::milliseconds shortest_window{1}, longest_window{20};
// Accesses that a window keeps track of.
inline constexpr std::size_t most_touches = 1u << 20;
// Then variables are no longer told apart: a table that two threads write has many.
inline constexpr std::size_t most_entries_by_variable = 1u << 14;

}  // namespace shadowprof::profile::tuning
