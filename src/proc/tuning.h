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

}  // namespace shadowprof::proc::tuning
