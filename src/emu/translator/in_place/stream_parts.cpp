#include "emu/translator/in_place/stream_parts.h"

#include <algorithm>

#include "emu/tuning.h"
#include "trace/segment.h"

namespace shadowprof::emu::translator {

namespace {

constexpr std::uint64_t longest = part_room / sizeof(trace::SegmentId);

// In segments.
std::uint64_t length_of(std::size_t part) {
    constexpr std::size_t doublings = 16;
    return std::min(longest, tuning::first_part_of_stream << std::min(part, doublings));
}

}  // namespace

StreamParts::StreamParts(SharedMemory& memory, std::uint32_t area, std::uint64_t segments)
    : memory_(&memory), area_(area), read_up_to_(begin_of(0)) {
    for (std::uint64_t room = 0; count_ < most_parts && (count_ == 0 || room < segments); ++count_)
        room += length_of(count_);
    for (std::size_t part = 0; part <= count_; ++part)
        memory_->part(area_, part).begin = part < count_ ? begin_of(part) : 0;
    memory_->area(area_).part = memory_->place_of_part(area_, 0);
}

std::uint64_t StreamParts::begin_of(std::size_t part) const {
    return limit_of(part) - part_room - length_of(part) * sizeof(trace::SegmentId);
}

// With what the last unit wrote.
std::uint64_t StreamParts::limit_of(std::size_t part) const {
    return memory_->place_of_slot(area_) + parts_at + (part + 1) * 2 * part_room;
}

std::optional<std::vector<StreamParts::Written>> StreamParts::take(std::uint64_t stream) {
    const auto distance = memory_->read_area(area_).part - memory_->place_of_part(area_, current_);
    const auto now = current_ + distance / sizeof(StreamPart);
    if (distance % sizeof(StreamPart) != 0 || now > count_ || now < current_) return {};
    std::vector<Written> written;
    for (; current_ < now; ++current_) {
        const auto part = memory_->read_part(area_, current_);
        const auto end = part.end & ~alias;
        if (end < read_up_to_ || end > limit_of(current_)) return {};
        const auto calls_over = (part.calls_over_high << 32) + part.calls_over_low;
        written.push_back({read_up_to_, end, true, {{}, part.at, part.calls_began, calls_over}});
        read_up_to_ = begin_of(current_ + 1);
    }
    // It may stand between two parts.
    const bool is_in_part = read_up_to_ <= stream && stream <= limit_of(current_);
    if (current_ < count_ && is_in_part) {
        written.push_back({read_up_to_, stream, false, {}});
        read_up_to_ = stream;
    }
    return written;
}

}  // namespace shadowprof::emu::translator
