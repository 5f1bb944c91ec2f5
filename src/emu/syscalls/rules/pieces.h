// The pieces of memory that a call moves to or from a file: one buffer, or an iovec array.
#pragma once

#include <vector>

#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

constexpr std::uint64_t most_bytes_a_call = 0x7ffff000;  // MAX_RW_COUNT
constexpr std::uint64_t most_pieces = 1024;              // UIO_MAXIOV
constexpr std::uint64_t most_bytes_at_once = 1 << 20;    // copied in one go

struct Piece {
    Address begin;
    std::uint64_t size = 0;
};
struct Pieces {
    std::vector<Piece> pieces;
    std::int64_t size = 0;  // of all, or -errno
};

Pieces pieces_in_buffer(Address begin, std::uint64_t size);
Pieces pieces_in_array(GuestMemory&, Address array, std::uint64_t count);

}  // namespace shadowprof::emu::rules
