#include "trace/segment.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace shadowprof::trace {

namespace {

std::uint64_t hash_of(std::span<const BlockId> blocks) {
    std::uint64_t hash = blocks.size();
    for (const auto block : blocks) hash = combine_hashes(hash, static_cast<std::uint32_t>(block));
    return hash;
}

}  // namespace

SegmentTable::SegmentTable() : pages_(std::make_unique<std::atomic<Page*>[]>(most_pages)) {}

SegmentTable::~SegmentTable() {
    for (std::size_t page = 0; page < most_pages; ++page)
        delete pages_[page].load(std::memory_order_relaxed);
}

SegmentId SegmentTable::publish(std::span<const BlockId> blocks) {
    SHADOWPROF_ASSERT(!blocks.empty(), "a segment without blocks");
    const std::lock_guard lock{publishing_};
    const auto id = size_.load(std::memory_order_relaxed);
    auto& known = known_[hash_of(blocks)];
    if (known > 0 && std::ranges::equal(at(SegmentId{known - 1}), blocks))
        return SegmentId{known - 1};
    if (known == 0) known = id + 1;
    SHADOWPROF_ASSERT(id / segments_per_page < most_pages, "too many segments");
    auto& page = pages_[id / segments_per_page];
    if (id % segments_per_page == 0) page.store(new Page, std::memory_order_release);
    (*page.load(std::memory_order_relaxed))[id % segments_per_page] = keep(blocks);
    size_.store(id + 1, std::memory_order_release);
    return SegmentId{id};
}

// The segments of a unit are the first blocks of one row, and published from the shortest to the
// longest. So one that begins as the last one did shares its blocks.
std::span<const BlockId> SegmentTable::keep(std::span<const BlockId> blocks) {
    auto shared = std::min(row_.size(), blocks.size());
    if (!std::ranges::equal(row_.first(shared), blocks.first(shared))) {
        row_ = row_.last(0);
        shared = 0;
    }
    if (room_ < blocks.size() - shared) {
        room_ = std::max(blocks.size(), blocks_per_store);
        row_ = {stores_.emplace_back(std::make_unique<BlockId[]>(room_)).get(), 0};
        shared = 0;
    }
    const auto added = blocks.subspan(shared);
    std::ranges::copy(added, row_.data() + row_.size());
    row_ = {row_.data(), row_.size() + added.size()};
    room_ -= added.size();
    return row_.first(blocks.size());
}

std::span<const BlockId> SegmentTable::at(SegmentId id) const {
    const auto index = static_cast<std::uint32_t>(id);
    SHADOWPROF_ASSERT(index < size(), "segment " + std::to_string(index));
    return (*pages_[index / segments_per_page].load(
        std::memory_order_acquire))[index % segments_per_page];
}

TraceChunk expand(const SegmentChunk& chunk, const SegmentTable& segments) {
    TraceChunk blocks;
    blocks.trace = chunk.trace;
    for (const auto id : chunk.segments) {
        if (id == segment_discontinuity) {
            blocks.blocks.push_back(discontinuity);
            continue;
        }
        const auto of_segment = segments.at(id);
        blocks.blocks.insert(blocks.blocks.end(), of_segment.begin(), of_segment.end());
    }
    for (const auto& continuation : chunk.continuations) {
        blocks.values.push_back(continuation.address.value);
        blocks.continuation_places.push_back(continuation.place);
    }
    return blocks;
}

}  // namespace shadowprof::trace
