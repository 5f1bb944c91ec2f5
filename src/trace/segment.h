// Segments: the compact encoding of a Trace. An engine that runs code in stretches of several
// blocks writes down one number for each stretch, and publishes once which blocks it has.
//
// A segment is a run of blocks executed one after the other, each left by its own exit to the next.
// However a sequence of blocks is cut into segments, it means the same.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "trace/block.h"
#include "trace/trace.h"

namespace shadowprof::trace {

// Owns every segment of a run. Any thread may publish: there may be several code caches, of the
// program and of replicas. Any thread may read a segment whose id reached it through a synchronised
// hand-over, such as a chunk passed through a queue.
class SegmentTable {
  public:
    SegmentTable();
    ~SegmentTable();
    SegmentTable(const SegmentTable&) = delete;
    SegmentTable& operator=(const SegmentTable&) = delete;

    // At least one block. The same blocks yield the same segment, because a program with more code
    // than the code cache holds is translated again and again.
    SegmentId publish(std::span<const BlockId> blocks);
    std::span<const BlockId> at(SegmentId id) const;
    std::uint32_t size() const { return size_.load(std::memory_order_acquire); }

  private:
    static constexpr std::size_t segments_per_page = 1u << 12;
    static constexpr std::size_t most_pages = 1u << 14;
    static constexpr std::size_t blocks_per_store = 1u << 14;
    using Page = std::array<std::span<const BlockId>, segments_per_page>;

    std::span<const BlockId> keep(std::span<const BlockId> blocks);

    std::mutex publishing_;
    std::unique_ptr<std::atomic<Page*>[]> pages_;
    std::atomic<std::uint32_t> size_{0};
    FlatMap<std::uint32_t> known_;  // by their blocks' hash: the id, plus 1
    // Where the publisher keeps blocks; the last store has room left, behind the last row.
    std::vector<std::unique_ptr<BlockId[]>> stores_;
    std::size_t room_ = 0;
    std::span<BlockId> row_;
};

// The same as blocks, without values, for readers that do not know segments.
TraceChunk expand(const SegmentChunk& chunk, const SegmentTable& segments);

}  // namespace shadowprof::trace
