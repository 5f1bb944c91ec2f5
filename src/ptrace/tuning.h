// The tuning constants of this room: what each one does, and where its value comes from. None of
// them decides what is right, only how soon something is noticed and what that costs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace shadowprof::ptrace::tuning {

// --- waiting (tracer.cpp, wait_timer.cpp) --------------------------------------------------------

// How long wait() looks again and again, instead of sleeping, after a thread was asked to stop. A
// thread stands still from its stop until it is heard of; a wake-up less is a third of that time,
// and a running thread stops within microseconds (bench/fork).
inline constexpr std::chrono::microseconds worth_watching{60};
// The same after the bell was rung: a thread that meets new code often asks again soon, and waits
// for the answer. Chosen by reasoning: about what two wake-ups take.
inline constexpr std::chrono::microseconds worth_listening{50};
// The longest sleep where those who ring cannot wake us.
inline constexpr std::chrono::microseconds sleep_beside_mute_bell{200};
// How many tracing threads that sleep at their bells wake each other, and the longest sleep of
// those beyond. By reasoning: more are seldom awake at once. (Looking each 2 ms took 1 to 2 % of a
// processor for each of them where entering the kernel is dear.)
inline constexpr std::size_t most_sleepers_at_bells = 64;
inline constexpr std::chrono::milliseconds sleep_among_many_tracers{2};
// The longest sleep: whatever a sleep may miss is looked for at least this often.
inline constexpr std::chrono::milliseconds longest_sleep{100};
// The longest sleep while no thread is traced: a stop of the whole program shows only by looking.
inline constexpr std::chrono::milliseconds between_looks_at_loose{50};
// The slice of processor time that the tracing thread asks for, in nanoseconds: the shortest that
// the kernel grants. A shorter slice lets it come before threads that have run for a while.
inline constexpr std::uint64_t shortest_slice_ns = 100'000;

// --- attaching (thread_seizer.cpp) ---------------------------------------------------------------

// How long one attempt to seize a thread may sleep. An exec blocks it until the process's other
// threads have ended, and we may have to hear of their ends first.
inline constexpr std::chrono::milliseconds longest_seizure{20};
// When to look for threads that were being created during the attach: first after this time, then
// after twice as long each time, up to the longest. A creation takes well under a millisecond of
// processor time, but may be kept waiting for it.
inline constexpr std::chrono::milliseconds first_look_for_missed{1};
inline constexpr std::chrono::seconds longest_between_looks_for_missed{10};

// --- detaching (detach.cpp, woken_threads.h) -----------------------------------------------------

// How often the threads are looked at, until the deadline, and then while one is still awaited that
// is stepping or has been asked to stop.
inline constexpr std::chrono::microseconds between_looks_detaching{300};
inline constexpr std::chrono::seconds longest_detaching{1};
inline constexpr std::chrono::milliseconds between_looks_for_awaited{10};
// Processor time after which a thread that was woken has surely reported it: that takes
// microseconds once it has a processor.
inline constexpr std::uint64_t surely_reported_ns = 1'000'000;
// A thread that is always met awake, but has slept this many times meanwhile, sleeps and wakes by
// itself.
inline constexpr int enough_sleeps = 3;

// --- stepping (cpu_follower.cpp) -----------------------------------------------------------------

// After how many stops to look where the stepped thread runs: looking costs as much as a step.
inline constexpr unsigned stops_between_looks = 256;

// How many threads are stepped at once of which a crash lets go (stepped_threads.h).
inline constexpr std::size_t most_stepped_threads = 1024;

// --- call stacks (call_stack.h) ------------------------------------------------------------------

// Bytes of stack that a snapshot copies: enough for all but the deepest recursion.
inline constexpr std::size_t stack_snapshot_size = 64u << 10;

}  // namespace shadowprof::ptrace::tuning
