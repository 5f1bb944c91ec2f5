// The stream of a thread in a burst, which goes through its parts by itself (fixed_code.cpp): where
// they are, and what it wrote.
//
// Parts are short at first and then longer, so that a thread whose code is slow is not far beyond
// the end of its time when it looks at the clock. When each was over is known, and so how fast the
// program was, and how that changed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emu/translator/shared_memory.h"
#include "emu/translator/threads/segment_work.h"

namespace shadowprof::emu::translator {

// What was executed in a part of a stream. At its end the time stamp counter, and of the system
// calls since the thread went on the sums of when they began and were over.
struct Stretch {
    Work work;
    std::uint64_t until = 0, calls_began = 0, calls_over = 0;
};

class StreamParts {
  public:
    // For about so many segments; at least one part.
    StreamParts(SharedMemory& memory, std::uint32_t area, std::uint64_t segments);

    std::uint64_t begin() const { return begin_of(0); }

    struct Written {
        std::uint64_t from, until;
        bool is_whole;   // the part is over, and this is its rest
        Stretch at_end;  // … but for the work
    };
    // What the thread has written since the last time, and would go on at `stream`. Nothing if that
    // cannot be.
    std::optional<std::vector<Written>> take(std::uint64_t stream);

  private:
    std::uint64_t begin_of(std::size_t part) const;
    std::uint64_t limit_of(std::size_t part) const;

    SharedMemory* memory_;
    std::uint32_t area_;
    std::size_t count_ = 0;
    std::size_t current_ = 0;  // the part that is read
    std::uint64_t read_up_to_;
};

}  // namespace shadowprof::emu::translator
