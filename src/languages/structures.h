// What the structures of interpreters have in common.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/address.h"
#include "languages/memory.h"

namespace shadowprof::languages {

// What is deeper is not read: a look is to be short.
inline constexpr std::size_t most_frames = 256;
// There are hardly more. Lists that lead in a circle end here.
inline constexpr std::size_t most_interpreters = 64, most_threads = 4096;

// A field of a structure that was read as a whole.
template <class T>
T field(std::span<const std::byte> of, std::uint64_t offset) {
    T value{};
    if (offset <= of.size() && of.size() - offset >= sizeof value)
        std::memcpy(&value, of.data() + offset, sizeof value);
    return value;
}

// What an object or structure may be at.
constexpr bool may_be_pointer(Address at) {
    constexpr std::uint64_t least = 4096, end_of_user_space = std::uint64_t{1} << 47;
    return at.value >= least && at.value < end_of_user_space && at.value % 8 == 0;
}

// Whether that is what pthread calls the thread that the kernel knows by this number. After a fork
// this is right where numbers that interpreters noted may not be.
bool is_pthread_of(const Memory& memory, Address pthread, pid_t tid);

}  // namespace shadowprof::languages
