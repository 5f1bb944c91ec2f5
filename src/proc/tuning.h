// The tuning constants of this room: what each one limits. They bound how long a look may take.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shadowprof::proc::tuning {

// A process with more private writable memory than this is not asked for its pages (own_pages.cpp):
// reading /proc/PID/pagemap takes milliseconds for each GB.
inline constexpr std::uint64_t most_memory_looked_at = 1ull << 30;
// How many neighbouring pages one system call makes the process's own (own_pages.cpp).
inline constexpr std::size_t most_pages_at_once = 1024;

// How much of an image's notes is searched for its build id, in bytes (maps.cpp).
inline constexpr std::uint64_t most_notes = 65536;

// --- clocks of threads (thread_clock.cpp, look_buffer.cpp)
// ----------------------------------------

// Threads that are watched at a time: each takes memory of the kernel that is limited.
inline constexpr std::size_t most_threads_watched = 64;
// What is kept of a thread until it is read: bytes, where looks are bare program counters; and how
// many looks with their stacks, at least.
inline constexpr std::size_t room_for_counters = 2 * 4096, stacks_kept_of_a_thread = 15;

// --- descendants (descendants.cpp) ---------------------------------------------------------------

// Where more processes and threads were started since the last look, the folder of all is read.
inline constexpr int most_numbers_looked_at = 2048;

}  // namespace shadowprof::proc::tuning
