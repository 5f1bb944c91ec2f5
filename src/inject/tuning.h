// The tuning constants of this room: what each one does, and where its value comes from. None of
// them decides whether an injection is safe, only how much waiting and looking surrounds it.
#pragma once

#include <chrono>
#include <cstdint>

namespace shadowprof::inject::tuning {

// --- the fork (fork_stub.cpp, fork_site.cpp) -----------------------------------------------------

// Loads of a shared word by which the forking thread waits for the intermediary before it sleeps on
// a futex: for its beginning, a tenth of a millisecond at most, and for its end, ten times as long.
// A loop with `pause` takes 5 to 50 ns a turn, depending on the processor. Sleeping would cost an
// interrupt between processors, 20 us and more under a hypervisor (bench/fork).
inline constexpr unsigned looks_for_beginning = 2000;
inline constexpr unsigned looks_for_end = 20000;
// Calls of wait4(WNOHANG) for an intermediary that has left the shared memory, and so ends soon.
inline constexpr unsigned looks_for_zombie = 100;

// How long the tracing thread leaves its processor to a fork in progress. Forks of small programs
// take less (bench/fork); for larger ones this is a small part of the fork, and meanwhile nobody
// serves the program's other threads.
inline constexpr std::chrono::microseconds longest_await_of_return{500};

// How long a newborn sleeps in the stub until somebody takes it; then it ends by itself.
inline constexpr std::chrono::seconds newborn_patience{1};
// When a newborn is given up: later than it may have given up itself.
inline constexpr std::chrono::seconds newborn_given_up_after{3};
// A worker that waits for a newborn also looks for failures this often, for nobody announces them.
inline constexpr std::chrono::milliseconds between_looks_for_newborn{20};

// How long, and how often, we look for the end of a child that was killed or is about to end. It
// takes some microseconds, or as long as others have its processor.
inline constexpr int tries_to_reap = 100;
inline constexpr std::chrono::milliseconds between_tries_to_reap{1};

// Processor time after which a thread that had finished in the stub has surely returned: many times
// what the last instructions of the stub take.
inline constexpr std::uint64_t surely_returned_ns = 10'000'000;

// --- what forbids a fork (fork_conditions.cpp, obstacle_watch.cpp) -------------------------------

// How often to look for conditions that come and go by themselves, such as scarce memory.
inline constexpr std::chrono::milliseconds between_looks_for_obstacles{100};
// A limit on the processes of a user (RLIMIT_NPROC) below this forbids replicas. It is far above
// what one user has and what replicas add; counting the user's processes would mean asking all
// processes of the machine.
inline constexpr long enough_processes = 1024;
// A control group with room for fewer processes than this (pids.max) forbids replicas for now.
inline constexpr double enough_room_in_group = 64;

// --- replicas (replica.cpp) ----------------------------------------------------------------------

// How often the processor time of a replica that runs freely is compared with its limit.
inline constexpr std::chrono::microseconds between_looks_at_replica{100};

}  // namespace shadowprof::inject::tuning
