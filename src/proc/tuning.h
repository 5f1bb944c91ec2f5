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

// --- contexts of threads (thread_context.cpp, thread_variable.cpp) -------------------------------

// Bytes of a record with its attributes: OTEP 4947 recommends 640. And of a process context.
inline constexpr std::size_t largest_thread_context = 4096, largest_process_context = 1u << 20;
// How much of a stack or mapping is searched for what a thread's fs points to.
inline constexpr std::uint64_t sought_for_pointer = 1u << 20, sought_for_first_pointer = 64u << 20;

// --- descendants (descendants.cpp) ---------------------------------------------------------------

// Where more processes and threads were started since the last look, the folder of all is read.
inline constexpr int most_numbers_looked_at = 2048;

}  // namespace shadowprof::proc::tuning
