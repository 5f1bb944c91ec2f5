// The tuning constants of the engines: value and unit, what each does, and how it was chosen.
// "Measured" names the program of bench/ that gives the figures; a constant without that word was
// chosen by reasoning, which is given.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shadowprof::emu::tuning {

// Pages of unchanging code that are kept, each in the one place that its number gives it. Code that
// is translated one after the other is close together.
inline constexpr std::size_t pages_of_code_kept = 64;

// ---- Interpreter

// Bytes of guest memory that are fetched at a time. Lines that are copied out of the caches of the
// guest's processor have to be fetched back: for a hundred pages this takes 130 to 380 µs after
// each burst, while a hundred lines of 64 bytes cost nothing measurable. But each fetch is a system
// call of a microsecond, whatever its size. Measured with bench/bursts: a burst of xz costs 830 µs
// by pages, 770 by 1024 bytes, 540 by 512; one of bzip2 550, 600, 550.
inline constexpr std::uint64_t piece_size = 512;
// Entries of the tables that compiled code looks up: pieces of memory, and targets of indirect
// branches. Larger ones take longer to empty after each burst.
inline constexpr unsigned tlb_size = 512;
inline constexpr unsigned jump_table_size = 4096;
// Instructions within which a thread that spins must come back to the same state. Loops that wait
// for a lock have some dozens.
inline constexpr int most_instructions_of_spinning = 512;

// ---- Translator: units of code

// Blocks and instructions of a unit that was translated without having been seen to run. Code that
// comes later in it is likely not to be executed.
inline constexpr std::size_t most_blocks_in_unit = 8;
inline constexpr std::size_t most_instructions_in_unit = 128;
// Units translated ahead for each one that a thread asks for, because a miss costs two ptrace stops
// (40 µs each on machines where entering the kernel is expensive).
inline constexpr std::size_t look_ahead = 24;
// The same where earlier runs say what will be executed next. More of it is translated while the
// thread goes on.
inline constexpr std::size_t known_ahead = 24;
// For bursts code is translated between them, and while nobody waits: that from which at most so
// many uncertain branches lead back to where threads are (code_ahead.h), of which so many places
// are noted. A burst that waits gets what it asks for and nothing else. So many units are
// translated that nobody may ever execute, at first and for each one that a burst had to ask for.
// Measured with bench/cold/learning.py: six more units for each that a burst asks for, without a
// limit to guesses and to a depth of 24, leave half of the second run's samples without their end,
// and take half as much processor time again.
inline constexpr unsigned deepest_ahead = 12, ahead_in_window = 3;
inline constexpr std::size_t most_ahead = 1u << 14;
inline constexpr std::size_t guesses_at_first = 2000, guesses_for_a_miss = 20,
                             guesses_for_a_window = 200;
// Blocks and instructions of a unit that follows the way a thread was seen to go, through as many
// rounds of loops as there is room for. Measured with bench/full/replicas.py: with units of this
// length replicas are twice as fast as with units of eight blocks.
inline constexpr std::size_t most_blocks_followed = 48;
inline constexpr std::size_t most_instructions_followed = 640;

// Versions of code that changes that are kept beside each other. A thread that comes to code that
// is another one than last time goes through them, some 5 ns each, before it asks.
inline constexpr std::size_t most_versions_of_code = 64;

// Code that is renewed in one answer because it was changed, too, and came next the time before.
inline constexpr std::size_t renewed_ahead = 24;
// Changes of code in constants only, until these are taken from memory. Until then each version is
// a block of its own.
inline constexpr unsigned changes_until_constants_vary = 16;

// Hot code is looked for at random places in a thread's stream: so many looks for each stretch that
// is read, if the stretch has at least so many segments. A place that was met so many times is hot;
// the unit that is then made follows at most so many segments.
inline constexpr std::size_t looks_for_hot_code = 96;
inline constexpr std::size_t fewest_segments_for_looks = 4096;
inline constexpr unsigned hits_of_hot_code = 3;
inline constexpr std::size_t most_segments_followed = 64;

// Rounds of looking for an answer before the thread sleeps: some 20 µs, as long as a wake-up takes.
inline constexpr std::uint64_t spins_for_answer = 600;
// While a processor is free a burst is watched, and most requests are answered within 100 µs: to
// sleep and be woken takes that much longer, twice in most bursts. Where none is free, the thread
// makes room for whoever answers.
inline constexpr std::uint64_t spins_in_burst = 5000, spins_without_processor = 1;
// Nanoseconds after which a thread that sleeps looks whether the profiler is still alive.
inline constexpr std::int64_t patience_for_answer = 5'000'000;

// Bytes of translations of one program or library that are kept for later runs, and of how many
// there may be some that were never executed: python3 has 5 MB that were, a compiler 50. They are
// written again when there are more by one in so many.
inline constexpr std::size_t largest_kept_module = 256u << 20, largest_with_guesses = 32u << 20;
inline constexpr std::uint64_t least_part_of_news = 32, least_part_of_guesses = 4;

// ---- Translator: capture windows (thread_recording.h)

// Blocks in a segment, as long as nothing is known; and the segments after which it is looked
// again. There may be fifteen times as many blocks, so the first look is to come soon.
inline constexpr std::uint64_t fewest_blocks_in_segment = 3;
inline constexpr std::uint64_t segments_until_known = 1024;

// A window for values, in blocks. The two stops of a window, 50 µs together, are to be a small part
// of what it takes.
inline constexpr std::uint64_t shortest_window_of_values = 3 * 1024;
inline constexpr std::uint64_t longest_window_of_values = 24 * 1024;
// A sample of known length is to have so many windows for values; a run without an end so many
// before they become longer, for each of them is a sample by itself. In the original's time, one
// comes at least every so many nanoseconds.
inline constexpr double windows_of_values_in_sample = 8;
inline constexpr double windows_of_values_before_longer = 1000;
inline constexpr double nanoseconds_between_windows_of_values = 500e3;

// What is known of loads grows with the blocks in windows, and so does the time that a replica
// takes. A sample of many blocks has the least share of them in windows. In a sample of few blocks
// each takes long, so windows matter little beside that: it gets as many as are wanted, up to the
// largest share. A sample has one window; if it takes longer than `apart`, it has one in each
// `apart` nanoseconds of the original's time, because each begins and ends with stops. Measured
// with bench/latency.
struct WindowShare {
    double wanted;             // blocks in a sample
    double least;              // share of all blocks
    double apart;              // nanoseconds, from one window to the next
    double shortest, longest;  // window, in blocks
};
inline constexpr double largest_window_share = 1.0 / 4;
inline constexpr WindowShare windows_of_timings{
    .wanted = 4 * 1024, .least = 1.0 / 32, .apart = 1e6, .shortest = 384, .longest = 32 * 1024};
// Addresses are the most expensive to record. The longest window sees most of what a cache of the
// first or second level holds once more.
inline constexpr WindowShare windows_of_accesses{
    .wanted = 16 * 1024, .least = 1.0 / 128, .apart = 8e6, .shortest = 512, .longest = 96 * 1024};
// Loads from one that is timed to the next within a window, and how many are wanted in a sample.
inline constexpr double fewest_loads_between_timings = 8;
inline constexpr double most_loads_between_timings = 128;
inline constexpr double timings_in_sample = 256;

// ---- Translator: how long a replica's sample is (translated_replica.h, native_time.h)

// Blocks until a replica is first looked at. Each look is a stop.
inline constexpr std::uint64_t blocks_until_look = 48 * 1024;
// Nanoseconds of the original's: the warming up before a sample, and the stretch that is run
// natively to measure the rate. A shorter sample is not worth a stretch.
inline constexpr double longest_warm_up = 2e6;
inline constexpr double shortest_stretch = 100e3;
inline constexpr double longest_stretch = 500e3;
// Segments of the warming up that are remembered, to choose a landmark from.
inline constexpr std::size_t most_segments_remembered = 1 << 15;
// For the length of samples that are wanted in instructions.
inline constexpr double usual_instructions_in_block = 5;
// A look for spinning interprets some hundred instructions, so a sample makes few of them. A
// replica that yields so many times with the same registers spins.
inline constexpr int looks_for_spinning = 2;
inline constexpr int yields_in_vain = 32;

// Nanoseconds that a replica takes besides the original's time: for each stop, block, and indirect
// jump. Measured on Zen 4 with bench/full/replicas.py.
inline constexpr double nanoseconds_of_stop = 10'000;
inline constexpr double nanoseconds_of_block = 0.2;
inline constexpr double nanoseconds_of_indirect = 0.2;
// The original's part of a replica's time is not estimated to be smaller: where much else goes on
// the prices are too rough.
inline constexpr double smallest_part_of_original = 0.3;
// Nanoseconds for which a rate that was measured natively holds. What is executed later may be
// other code.
inline constexpr double rate_holds_for = 2e6;

// What is executed in the cache besides, for each block and indirect jump (which is looked up), as
// if it were so many instructions of the program: they take as long as its own, hidden or not by
// what it waits for. And nanoseconds that a segment takes longer the first time, until it is in the
// processor's caches; these may be so large a part. Fitted to samples of eleven programs
// (docs/results/sight.md).
inline constexpr double instructions_for_block = 0.7, instructions_for_indirect = 15;
inline constexpr double nanoseconds_of_fresh = 200, most_of_fresh = 0.5;

// ---- Translator: bursts in place (in_place/burst.h)

// The first part of a burst's stream, in segments; each is twice as long as the one before, until
// it has as many as there is room for (in_place/stream_parts.h).
inline constexpr std::uint64_t first_part_of_stream = 64;
// As if so many instructions had been executed in so much time, as long as nothing is known; and
// how much of what was known remains with each burst.
inline constexpr std::uint64_t instructions_at_first = 100'000;
inline constexpr double nanoseconds_of_instruction_at_first = 0.15, kept_of_experience = 0.9;
// Nanoseconds for which a burst pays for the code cache's being in no cache of the processor; and
// how much that may come to.
inline constexpr double cold_for = 60e3, most_disturbance = 150e3;
// What is known follows what a burst shows by this part (in_place/learned.h).
inline constexpr double followed_of_shown = 0.25;
// Nanoseconds of a system call, without sleep, as long as nothing is known.
inline constexpr double usual_nanoseconds_of_call = 500;
// Fewer blocks say nothing; and what would be shorter than this part of a burst is left out.
inline constexpr double fewest_blocks_to_measure = 1000;
inline constexpr double negligible_part = 0.05;
// Nanoseconds that a thread may wait for code in one burst, which then ends. What a burst may take
// has to be bounded, for whoever waits for the program; the code that it came to is translated
// before the next one.
inline constexpr double longest_wait_in_burst = 1e6;
// The same of stops, for signals (five for each) and calls that have to be seen (three). Where
// signals come more often than they can be handled, a burst would never end.
inline constexpr std::uint64_t most_stops_in_burst = 20;
// Milliseconds. A thread that may not ring is looked at often, and that for this long if it sleeps:
// by reasoning, a look takes 10 µs, and few calls of programs that compute sleep longer.
inline constexpr int longest_sleep_in_burst = 3;
// Nanoseconds: a thread that says it was longer in the cache without asking was not on a processor.
inline constexpr double longest_part_of_burst = 1e9;

// ---- Translator: measuring a replica natively (native_stretch.h, landmark.h)

// A stretch is given up when it has taken so many times as long as it should.
inline constexpr double patience_of_stretch = 4;
// Of a part of a stretch in which faults took a larger share of the time the rest says nothing:
// what a fault takes is known only roughly.
inline constexpr double most_faults_in_stretch = 0.7;
// A rate that was measured with fewer faults is final as soon as it is steady: a part takes no less
// than this share of the time of the part before.
inline constexpr double few_faults_in_stretch = 0.4;
inline constexpr double steady_rate = 0.67;
// Nanoseconds of an instruction. No program is slower: a processor waits so long for each load of
// memory that is in no cache.
inline constexpr double slowest_instruction = 100;
// A stretch becomes at most so many times as long as was wanted, and a part so many times as long
// as the one before.
inline constexpr double most_stretching = 16;
inline constexpr std::uint64_t most_growth_of_part = 16;

// A landmark is visited at least so many times in what was executed, best about so many times; and
// the visits reach over so much of it.
inline constexpr std::uint64_t fewest_visits_of_landmark = 20;
inline constexpr double good_visits_of_landmark = 500;
inline constexpr double part_with_landmark = 0.8;
// Looking at how regular their visits are takes time, so only so many are looked at. Measured: a
// landmark is chosen in a tenth of the time that all of them would take.
inline constexpr std::size_t most_candidates_for_landmark = 16;
// Nanoseconds from one visit to the next, at least, and of counting one.
inline constexpr double shortest_between_visits = 60;
inline constexpr double nanoseconds_of_counting = 1.2;

// ---- Translator: what comes too often (overload.h)

// After so many deliveries, and milliseconds, it is looked how much of the thread's time they took
// and how much its instructions did: beyond the one share and below the other, twice in a row, it
// goes on natively. By reasoning: signals that come at once say nothing, and new code takes time.
// About a third of a delivery's stops are counted: threads that came to nothing else had 0.25 to
// 0.5 of their own time in nearly all such windows, and executed for 0.003 of it.
inline constexpr unsigned deliveries_until_judged = 100;
inline constexpr unsigned milliseconds_until_judged = 100;
inline constexpr double most_time_for_deliveries = 0.22, least_time_for_program = 0.1;
inline constexpr double usual_seconds_of_instruction = 0.25e-9;
// One that sends itself signals, or faults, as often as this to one of the others is at work.
inline constexpr double part_of_own_signals = 0.05;
// Handlers that interrupt each other: each takes 3 KB of a stack that has 8 MB at most.
inline constexpr std::size_t deepest_handlers = 64;

// ---- Translator: taking over a program

// Attempts to make room for the cache in a running program, each of another thread or at another
// moment, before it is given up.
inline constexpr unsigned attempts_to_take_over = 100;
// Bytes that the program's control group must have left (memory.max). With a cache for samples in
// place program and profiler take some 40 MB more; in mode full it grows with what is executed.
inline constexpr double least_memory_left_in_bursts = 96e6, least_memory_left = 384e6;

}  // namespace shadowprof::emu::tuning
