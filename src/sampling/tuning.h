// The tuning constants of this room: what each does, and how its value was found. Measurements are
// in docs/results/ (cost.md, fork.md, full.md, latency.md) unless a bench is named.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/page.h"

namespace shadowprof::sampling::tuning {

// --- when: the budget (schedule/budget.h, schedule/pacer.cpp) ------------------------------------

// Between two samples as long as nothing is known of the costs: soon, so that short programs are
// seen as well.
inline constexpr Seconds first_mean_wait{0.02};
// What an attempt that finds no running thread is counted at most: the first one may prepare much.
inline constexpr Seconds most_counted_in_vain{1e-3};
// Samples become dearer while a program's memory grows. What was overdrawn by more than this is
// paid back before the next one.
inline constexpr Seconds credit{0.003};
// What a sample may come to that need not be earned first: the first samples of most programs do
// not wait.
inline constexpr Seconds risk_at_once{0.01};
// A stake is spent within about so much time: what is left of it adds to the budget as if it had
// to last so long.
inline constexpr Seconds stake_lasts{1.0};
// The part of the budget that samples keep, whatever a program's signals and threads cost it.
inline constexpr double kept_for_samples = 0.1;
// What signals and other stops without a sample may cost: this part of the budget, and so much at
// once. Where they cost more, threads are let go of between samples. By reasoning: samples are to
// have most of the budget, and programs that are seldom signalled are to be heard of all the time.
inline constexpr double part_for_passing_stops = 0.25;
inline constexpr Seconds credit_for_passing_stops{0.003};
// Samples that are rarer than this come at more even intervals.
inline constexpr Seconds rare_wait{0.25};
// In mode auto: the part of samples in place in which other threads take part, so many at most, for
// what they share. Each of them is stopped like the first.
inline constexpr double part_in_company = 0.125;
inline constexpr int most_company = 3;
// With --replica-threads: how long the program's threads are waited for until all have stopped, and
// until the fork is made. Replicas have so many threads at most, all together: as many as programs
// that are near their limits (inject/fork_conditions.cpp) could still start.
inline constexpr Seconds longest_stop_of_all{0.005}, longest_fork_of_all{0.05};
inline constexpr std::size_t most_threads_in_replicas = 64;
// Where all shares are known to better than this, samples become fewer, down to one of so many.
inline constexpr double good_precision = 0.01, most_samples_in_one = 10;
// A sample stands for the mean of so many waits before it.
inline constexpr std::size_t waits_that_a_sample_stands_for = 4;
// A sample counts for at most so many of its kind.
inline constexpr double most_weight = 1e9;
// One that is shorter than this part of the usual, the median of so many, counts as if it were not.
inline constexpr double least_part_of_usual = 0.3;
inline constexpr std::size_t samples_that_are_usual = 31;
// Nanoseconds, as long as no sample has shown it.
inline constexpr double usually_covered = 25e3;
// Where no sample has shown it.
inline constexpr double usual_nanoseconds_of_instruction = 0.25;

// --- at what cost (schedule/overhead_model.cpp) --------------------------------------------------

// The longest time that being woken is counted, before we hear that a thread has stopped.
inline constexpr Seconds longest_wake_up{100e-6};
// What a stop costs beyond the time that is seen: the thread's own wake-up, cold caches and TLB,
// less the time that it ran before the interruption reached it. Of threads that were held for a
// quarter of a millisecond, 350 times a second: 55 µs with 16 KB in use, 90 with 0.5 to 2 MB. Where
// page faults are dear, programs that compute lose more by a stop than it is long: nothing by one
// of 0.1 ms, 0.13 to 0.3 ms by one of a millisecond (bench/cost/unseen.py), and 0.15 to 1.1 ms if
// they were forked (bench/cost --moments). One that waits makes up for that while it would wait.
inline constexpr Seconds usually_unseen{50e-6}, most_unseen{450e-6};
// The same of a sample in place, whose thread notes when it goes on: what it finds cold when it is
// back in its own code.
inline constexpr Seconds unseen_in_place{10e-6};
inline constexpr double unseen_part_where_faults_are_dear = 0.5;
// A program that has a processor for so much of the time computes all the time.
inline constexpr double computes_all_the_time = 0.9;
// What a replica takes of the caches and the memory that all processors share, at least.
inline constexpr Seconds of_shared_caches{0.2e-3};
// The part of its time that a program loses while something computes on the other hardware thread
// of its core; and on virtual processors, which are put on one core at times.
inline constexpr double of_shared_core = 0.4, of_floating_processors = 0.025;
// Digesting what a replica leaves takes up to so many times as long as the replica. What takes
// longer is translation, which comes once.
inline constexpr double most_digested = 3;

// --- whom (schedule/thread_stopper.cpp, schedule/preemptor.cpp) ----------------------------------

// Between choosing a thread and asking it. Choosing takes a processor for a while; where each has
// work of somebody whom the program waits for, it would be found asleep.
inline constexpr Seconds rest_before_asking{0.002};
// The moment comes as much later as we are usually late ourselves, which is 10 µs on one machine
// and 110 on another. Who is there before it keeps a processor from others: a server whose client
// waits for that would be found asleep, and what it does behind its reads never be seen (measured:
// 5 % of a share of 25 where we were there 100 µs before).
inline constexpr Seconds longest_wake_up_of_ours{110e-6};
inline constexpr double wake_ups_remembered = 8;
// A thread that could not be displaced may be on its way to sleep when it is asked. After so many
// tries it is asked all the same.
inline constexpr int most_missed_displacements = 4;
// How late a preemptor may be, how long it waits on the processor to be met, and stays once it was.
// One that is late may be waiting for the very processor that ours has; and what holds one that is
// there may be killed.
inline constexpr std::chrono::microseconds preemptor_latest{150}, preemptor_waits{300},
    preemptor_stays{2000};
// A preemptor that was seen to run so recently has not been displaced itself.
inline constexpr std::chrono::microseconds ran_just_now{10};
// The kernel lets idle processors take over threads that have not run for half a millisecond.
inline constexpr std::chrono::microseconds before_taken_over{300};
// A thread that goes to sleep in a system call during its sample is let go after this.
inline constexpr Seconds patience{0.1};

// --- by which kind of sample (schedule/sampler.cpp) ----------------------------------------------

// The preferred kind is tried again after this; each time it was in vain, after twice as long.
// Trying costs a few forks.
inline constexpr Seconds shortest_pause{5}, longest_pause{60};
// What samples cost is known after so many.
inline constexpr std::uint64_t enough_to_know = 3;
// Where the budget lets there be fewer than two replicas a second, bursts tell more; and where
// replicas have become so dear, as memory grew, that none could be for so long (bench/accuracy).
inline constexpr Seconds longest_wait{0.5}, longest_debt{1.0};

// --- our area in the program (foothold.cpp) ------------------------------------------------------

// How long it may take to take the area out; how long one that runs is waited for, before one is
// woken for it; and how long a thread has for the rest of a call.
inline constexpr std::chrono::milliseconds await_removal{20'000}, await_running_thread{100},
    await_rest_of_call{5};

// --- replicas: when and how many (kinds/replica_samples.cpp) -------------------------------------

// What replicas do to the target is looked at so often while they live, and afterwards: what they
// left behind comes to light then.
inline constexpr std::chrono::milliseconds between_looks_at_replicas{5}, between_later_looks{100};
// How long the last samples are waited for when the program is over, and the first if there is
// none.
inline constexpr std::chrono::milliseconds await_first_sample{3000}, await_last_samples{200};
// Replicas that were of no use, one after the other, before they are given up. What makes all
// processors busy may pass, unless it is there from the beginning.
inline constexpr unsigned most_failures = 4, most_starved = 2, most_starved_at_first = 1;
// A program that writes all over its memory pays for each page while replicas only wait: they begin
// when it has paid so much.
inline constexpr Seconds most_for_settling{2e-3};
// … and while they compute: no sample takes more than the budget has in so much time. One that
// began as a program filled 512 MB at random took 400 ms from it.
inline constexpr Seconds most_time_of_budget{2};

// --- samples in place (kinds/instant_samples.cpp)

// Nanoseconds in the cache. What does not depend on the length (the stop, cold caches) is half of
// what a burst of this length costs.
inline constexpr double usual_burst = 600e3;

// --- replicas: how long (kinds/replica_sizing.cpp) -----------------------------------------------

// Instructions. Shorter samples are the business of bursts, which go on after any system call.
inline constexpr std::uint64_t shortest_replica = 80'000;
// Samples are longer in proportion where there are fewer of them than one in this time, up to so
// many instructions (64 ms).
inline constexpr Seconds usual_wait_for_replicas{0.025};
inline constexpr double longest_replica = 640e6;
// Instructions a nanosecond that a processor seldom executes more of; how many times as many as a
// sample's time suggests it may have (16 a nanosecond were seen); and the part of them that
// programs usually execute.
inline constexpr double most_per_nanosecond = 10, most_of_expected = 3, usual_part_of_most = 0.4;
// The part of the time for which as many replicas live as may be at once, …
inline constexpr double most_part_alive = 0.5;
// … and the part of the budget that their computing may cost, where computing beside the program
// takes something from it; what is digested costs as much again, or more.
inline constexpr double part_of_budget_for_computing = 0.25;
// How much of what is known of replicas' slowness remains with each new one.
inline constexpr double slowness_kept = 0.9;

// --- replicas: their lives (kinds/replicas.cpp) --------------------------------------------------

// A replica that needs longer is stuck, or the machine is: for how long may memory be held twice?
inline constexpr Seconds longest_life{2.0};
// One for which less than this share of so much time was computed will not get far.
inline constexpr Seconds long_enough_to_compute{0.3};
inline constexpr double least_share = 0.1;
// Between two looks at replicas: then we were stopped as well (Ctrl-Z), which is not held against
// them.
inline constexpr Seconds standstill{0.25};
// How long a replica waits before it begins, so that the original has fetched other lines into the
// cache they share: as long as the original takes for so many times the lines of that cache, at
// least and at most so long. While it waits the program's pages are shared, which costs: the
// longest only where latencies are what is asked for. In half a second half a gigabyte was chased
// through at 300 ns a line for three times what the last cache holds (bench/latency).
inline constexpr double lines_for_settling = 1.5;
inline constexpr Seconds shortest_settling{5e-3}, usual_longest_settling{0.2},
    longest_settling{0.5};
// Where page faults are dear, what only replicas wait for may be measured as the program's time,
// whatever is done against it. So of what they say of an instruction's time the least is believed;
// it may grow by this factor with each, as a program that goes over to waiting says so again and
// again; and a sample's instructions may take so many times the usual.
inline constexpr double most_growth = 1.2, most_above_usual = 4;

// --- what replicas are told (kinds/input_recorder.cpp, sandbox/journal.cpp)
// -----------------------

// Calls that are recorded for one replica, each with two stops. Three to ten are a request's.
inline constexpr std::size_t fewest_calls = 16, most_calls = 96;
// A replica has warmed up, if not by time, when it has been told so much.
inline constexpr std::size_t told_until_warm = 8;
inline constexpr double replicas_remembered = 8;
// So many that were told nothing, one after the other: then no more is recorded.
inline constexpr unsigned told_in_vain = 4;
// … within so much time, and so many bytes.
inline constexpr Seconds longest_recording{0.2};
inline constexpr std::size_t most_bytes_recorded = 4u << 20;
// What a stop costs that the tracing thread awaits (3.5 to 10 µs on four hosts that were idle or
// busy), besides the time it is seen to last; it awaits one so long after the last.
inline constexpr Seconds awaited_stop{6e-6}, soon_told{250e-6};
inline constexpr std::chrono::microseconds listens_longer{200};
// A replica waits for its original so long in all, and follows it across so many calls.
inline constexpr Seconds longest_wait_for_input{0.05};
inline constexpr std::size_t most_calls_left_out = 16;

// --- pages copied for replicas (kinds/page_copier.cpp) -------------------------------------------

// A replica that shows which pages a sample writes to is not helped before so many page faults.
inline constexpr std::uint64_t faults_that_teach = 1024;
// One replica of so many shows it anew: fewer as long as what was learnt goes on to help.
inline constexpr unsigned fewest_between_teachers = 8, most_between_teachers = 64;
// With fewer faults there is nothing to gain.
inline constexpr std::uint64_t faults_worth_learning = 128;
// Pages that are copied for one replica, at most, before it begins and while it runs.
inline constexpr std::size_t most_copied_ahead = 1u << 15, most_copied_meanwhile = 1u << 17;
// A copy made in vain is so many times cheaper than a trap (bench/full/replicas.py).
inline constexpr std::uint64_t copies_for_a_fault = 8;
// Copying ahead has to cost less than this part of what faults would.
inline constexpr double worth_copying = 0.75;
// While replicas run their pages are looked at so often, after so many faults at least: one for so
// many pages that are copied on write. A look takes a microsecond for twenty pages.
inline constexpr std::chrono::milliseconds between_looks_at_pages{5};
inline constexpr std::uint64_t fewest_faults_between_looks = 64, pages_for_a_fault = 128;
// How far the neighbours of a run of pages reach, at first and at most; and the widest gap in a
// run, in bytes.
inline constexpr std::uint64_t first_neighbours = 32, most_neighbours = 1u << 15;
inline constexpr std::uint64_t widest_gap_in_run = 8 * page_size;

// --- whichever tells more (kinds/best_samples.cpp) -----------------------------------------------

// A replica's sample is longer than one in place, but what is executed within a sample is alike: it
// tells as much as so many. Chosen by reasoning. (Where it counted as three replicas were taken
// whose computing was a third of the program's.)
inline constexpr double worth_of_replica = 1;
// The part of samples, or, if they are dearer, of the budget that goes on the kind that seems
// worse.
inline constexpr double part_for_the_other = 0.1;
// So many samples say what one costs; older ones count less and less.
inline constexpr std::uint64_t samples_remembered = 64;
// Replicas that ended early, after which there are no more.
inline constexpr unsigned most_ended_early = 2;

// --- bursts in place (kinds/instant_samples.cpp) -------------------------------------------------

// How often it is looked whether they are over.
inline constexpr Seconds between_looks_at_bursts{1e-3};
// … and whether it was seen in new code, if no burst is under way; and for how long the code there
// is translated at a time, and then rested, to see whether a processor would be idle otherwise.
// With a rest as long as the work, what a compiler executes was translated when it was over.
inline constexpr Seconds between_looks_at_places{10e-3};
inline constexpr Seconds work_at_a_time{400e-6}, rest_from_work{50e-6};
// Where all cores have work a look is at the program's cost, 60 µs where entering the kernel is
// dear; and so is the translating, which gets a part of the budget.
inline constexpr Seconds between_looks_at_others_cost{0.5};
inline constexpr double part_of_budget_for_work_ahead = 0.05;
inline constexpr Seconds credit_for_work_ahead{2e-3};
// How long the first burst waits for that.
inline constexpr Seconds longest_warming{0.2};
// So many say what they cost.
inline constexpr std::uint64_t bursts_to_know = 40;
// Bursts that make so many system calls, of so many of late, may begin behind one: what they see
// too often then is less than a tenth of them. Where nothing is known one is tried after so many
// stops that were all behind calls.
inline constexpr double calls_in_burst = 5, bursts_remembered = 8;
inline constexpr unsigned refused_until_tried = 6;
// For how long a burst is watched after each of its requests, and in all.
inline constexpr std::chrono::microseconds attention_to_burst{300}, longest_attention{3000};

// --- bursts (kinds/burst_samples.cpp; bench/bursts) ----------------------------------------------

// Instructions at a burst's beginning that are not recorded: a random number below this. More than
// a processor has in flight, and than a return from the kernel executes.
inline constexpr std::uint64_t most_unrecorded = 1024;
// The shortest burst where calls end them.
inline constexpr std::uint64_t shortest_uncut_burst = 300;
// The shortest while code is new: it holds its thread for about a millisecond.
inline constexpr std::uint64_t shortest_new_burst = 2000;
// A burst that takes more of both has met much new code: known code takes 5 to 15 ns an instruction
// and a burst some 100 µs besides.
inline constexpr Seconds acceptable_burst{1e-3};
inline constexpr Seconds acceptable_instruction{50e-9};
// How many pages a burst may copy, at some 5 to 20 µs each: what many instructions take that all
// use new ones. But one that is repeated may clear or move more of them than all others together.
inline constexpr std::size_t usual_pages = 256, instructions_a_page = 8;
// System calls of one burst that may be answered: a loop around an answered call ends.
inline constexpr unsigned most_answers = 1000;
// How often the thread of one burst may be stopped behind system calls; each time costs it as much
// as a burst. And the calls that may be answered on its way to one that cannot be: each is such a
// stop.
inline constexpr unsigned most_calls_awaited = 16, most_answers_before = 16;
// What a thread needs to execute natively what its burst has executed, and more, as calls may
// compute.
inline constexpr Seconds longest_way_to_call{20e-3};

// --- samples that calls cut short (kinds/sample_length.h) ----------------------------------------

// One sample of so many may end early.
inline constexpr double one_may_end_early_of = 50;
// One that does makes the next ones shorter by this factor; after the first such, one that does not
// makes them longer by that.
inline constexpr double shrinks_by = 4, grows_at_first_by = 2;

// --- mode full (session.cpp) ---------------------------------------------------------------------

// Pieces of work done ahead, of some 20 µs each, before it is looked what the program's threads are
// up to. A thread that asks by memory waits for one piece at most.
inline constexpr int pieces_of_work_ahead = 16;

// --- steps (kinds/step_samples.cpp) --------------------------------------------------------------

// A sample takes some 10 ms, and on a busy machine ten times as long.
inline constexpr Seconds longest_stepped{0.5};

// --- the clock (clock/program_clock.cpp; bench/clock) --------------------------------------------

// Nanoseconds that a thread runs from one look to the next, at least; and the part of a thread's
// time that looks may cost, at most, and of the budget: where each is dear they are fewer.
// Measured: two and a half times as much for them as before gave as many more looks, and hardly
// fewer samples. A prime number of microseconds, so that no usual rhythm of programs is in step.
inline constexpr std::uint64_t between_clock_looks = 4'999'000;
inline constexpr double most_cost_of_looks = 0.0025, part_of_budget_for_looks = 0.25;
// Bytes of stack that come with a look.
inline constexpr std::uint32_t clock_stack_size = 8192;
// What was seen is collected so often, give or take half of it, at first sooner; and threads that
// sleep are looked at. A thread has room for stacks_kept_of_a_thread looks, which are 75 ms; what
// finds no room is lost.
inline constexpr Seconds first_wait_for_looks{5e-3}, wait_for_looks{40e-3};

// --- requests (requests/program_requests.cpp) ----------------------------------------------------

// Records of requests that are remembered, and how soon the names of attributes are sought again:
// first, and ever later until then.
inline constexpr std::size_t most_records_known = 4096;
inline constexpr Seconds first_between_names{10e-3}, longest_between_names{1};

// --- looks that read more of a thread (clock/close_reader.cpp; bench/clock) ----------------------

// What of the budget they may cost, which is what users of such programs look at most; what one
// costs beyond the time until it is over, and is counted at most: somebody else may have had the
// processor.
inline constexpr double part_of_budget_for_close_looks = 0.4;
inline constexpr Seconds after_close_look{8e-6}, most_cost_of_close_look{300e-6};
// Nanoseconds from the clock's interrupt until we have displaced the thread: 45 µs on a virtual
// machine, where it executed no further instruction in 19 looks of 20. Later than this, or than
// twice the usual of so many, it had gone on.
inline constexpr std::uint64_t latest_displacement = 200'000;
inline constexpr std::size_t displacements_remembered = 31;
// A thread of ours for each of so many of the program's. The records of a thread's comings and
// goings are read so often, before they take the room of looks.
inline constexpr std::size_t most_close_readers = 32;
inline constexpr std::chrono::milliseconds between_cleanings{200};
// Looks at a thread that failed to read what it is at, and are waited with for one that does not.
inline constexpr std::size_t most_unread_looks = 32;
// If fewer of the looks read them, it is said.
inline constexpr double enough_looks_read = 0.75;

// --- processes (family/family.cpp) ---------------------------------------------------------------

// How often new processes are looked for, and what is known of the others is read again; and the
// part of a processor that the former may take. A look that finds nothing new costs 20 µs, and
// 120 µs where entering the kernel is dear.
inline constexpr Seconds between_looks_for_processes{10e-3}, between_looks_at_processes{50e-3};
inline constexpr double most_looks_for_processes = 5e-3;
// The part of a processor that it may take to see which thread has computed how long.
inline constexpr double most_looks_at_times_of_threads = 1e-3;
// A process that has computed for less than this is not looked at: a sample would cost it as much
// as a tenth of that, and there are thousands of such processes where a shell script or a test
// runner starts them.
inline constexpr Seconds least_computed{10e-3};
// Of processes that end as shortly only their number and their time is told.
inline constexpr Seconds too_short_to_tell{20e-3};
// So many are looked at at a time: each takes three threads and 10 MB of ours.
inline constexpr std::size_t most_at_a_time = 16;
// As often it is looked whether a process that nobody traces executes another program.
inline constexpr Seconds between_looks_for_programs{0.05};
// So many are looked at by the clock only; one that has computed for so long may get samples, too.
inline constexpr std::size_t most_looked_at_only = 16;
inline constexpr Seconds long_enough_for_samples{0.5};
// What the family may overdraw in all, and a process of it, at most and to be looked at at all.
inline constexpr Seconds credit_of_family{6e-3}, credit_of_member{1.5e-3};
inline constexpr Seconds least_credit_of_member{0.5e-3};
// How the time that processes computed counts that is one look back; and the least part that one
// has of the budget.
inline constexpr double kept_of_recent_time = 0.8, least_part_of_budget = 0.01;
// The most that are told one by one; threads of a process that are.
inline constexpr std::size_t most_processes_told = 200, most_threads_told = 64;
// What it takes us to look at one that sleeps, and the part of a processor that all such looks may
// take.
inline constexpr Seconds price_of_look_at_sleeper{60e-6};
inline constexpr double most_looks_at_sleepers = 0.01;
// Addresses of code that wait to be translated.
inline constexpr std::size_t most_places_seen = 4096;
// After so long other code may be where some was.
inline constexpr Seconds maps_grow_old{5};
// In which it is sought which call an instruction makes.
inline constexpr std::size_t code_before_system_call = 48;

// --- digesting (digester.cpp, chapter.h) ---------------------------------------------------------

// Seconds in which a snapshot is written; else it is given up. Building one takes a second or two
// where programs are large.
inline constexpr unsigned longest_snapshot = 60;

// Words of Traces that may wait to be read (64 MB).
inline constexpr std::size_t most_queued_words = 8u << 20;
// Engines' threads fill large buffers that the digester frees, and between them is what lives on:
// the holes grow, though what is in use does not (136 MB after 17 minutes, of which 30 were;
// bench/soak).
inline constexpr std::chrono::seconds between_trims{30};
// Empty buffers that are kept, of each kind: as many as are on their way where the digester keeps
// pace, of half a megabyte each.
inline constexpr std::size_t most_empty_chunks = 6;
// Blocks that are gone and make a chapter long enough. A block, with what follows from it in the
// profile, takes some two kilobytes.
inline constexpr std::size_t most_blocks_gone = 1u << 14;

}  // namespace shadowprof::sampling::tuning
