// How much was executed, in segments that were written down.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "emu/common/guest_code.h"
#include "emu/common/known_code.h"
#include "trace/segment.h"
#include "trace/trace.h"

namespace shadowprof::emu::translator {

struct Work {
    std::uint64_t blocks = 0, instructions = 0;
    std::uint64_t indirect = 0;  // jumps, calls and returns that may lead anywhere
    std::uint64_t segments = 0;
    std::uint64_t fresh = 0;  // different ones that were not among what its sample had before

    Work& operator+=(const Work& other) {
        blocks += other.blocks;
        instructions += other.instructions;
        indirect += other.indirect;
        segments += other.segments;
        fresh += other.fresh;
        return *this;
    }
    // `other` is a part of it.
    Work operator-(const Work& other) const {
        return {blocks - other.blocks, instructions - other.instructions, indirect - other.indirect,
                segments - other.segments, fresh - other.fresh};
    }
};

// Used by one thread at a time.
class SegmentWork {
  public:
    SegmentWork(const GuestCode& code, const trace::SegmentTable& segments, KnownCode& known)
        : code_(code), segments_(segments), executed_(known) {}

    // Of those that there are by now. Where a thread waits for `of` it is better done before.
    void know_segments();
    // Nothing if there is anything else among them.
    std::optional<Work> of(std::span<const trace::SegmentId> executed);
    // How many there are that were not among those of this reader before, if others read meanwhile
    // about so many.
    std::size_t count_new(std::span<const trace::SegmentId> executed, std::uint64_t reader);
    // How many arguments its blocks begin with; nothing if there is no such segment.
    std::optional<std::size_t> arguments_of(trace::SegmentId segment) {
        know_segments();
        const auto number = static_cast<std::size_t>(segment);
        if (number >= arguments_.size()) return {};
        return arguments_[number];
    }

  private:
    std::uint64_t see_for_the_first_time(std::span<const trace::SegmentId> executed);

    const GuestCode& code_;
    const trace::SegmentTable& segments_;
    KnownCode& executed_;
    std::vector<std::uint64_t> known_;  // all numbers of a segment in one word
    std::vector<std::uint16_t> arguments_;
    std::vector<std::uint64_t> last_reader_;  // of a segment
};

}  // namespace shadowprof::emu::translator
