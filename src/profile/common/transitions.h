// How often control went from which block to which: edges, calls and methods follow from that, so
// pairs of block ids are counted while reading, once for all of them, and they look closer once a
// sample.
//
// Nearly all blocks have at most two successors, so each has room for two and the rest go to a hash
// table.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "profile/common/edge_kind.h"
#include "profile/common/hotlists.h"
#include "profile/common/open_samples.h"
#include "profile/common/profiler.h"
#include "profile/common/walk.h"
#include "trace/trace.h"

namespace shadowprof::profile {

// Exits that make an edge: branches, calls and returns. A block that ends for its length, in a
// system call, in a trap or cut short has none.
bool has_edge(trace::BlockExit exit);

constexpr bool is_call(trace::BlockExit exit) {
    return exit == trace::BlockExit::call || exit == trace::BlockExit::indirect_call;
}

// The edge by which the block's exit leads to `to`; nothing if it cannot lead there.
// A conditional branch to the next instruction is taken.
std::optional<EdgeKind> edge_kind(const trace::Block& from, Address to);

// Of one sample; a visitor of walks.
class TransitionCounts {
  public:
    // Before blocks with these ids are counted.
    void make_room(std::uint32_t blocks) {
        if (rows_.size() < blocks) rows_.resize(blocks);
    }

    void run(trace::BlockId before, std::span<const trace::BlockId> blocks) {
        if (before != no_block) count(before, blocks.front());
        for (std::size_t i = 1; i < blocks.size(); ++i) count(blocks[i - 1], blocks[i]);
    }
    void leave(trace::BlockId from, Address next, const Location& place, std::uint64_t times = 1) {
        auto& exit = exits_[{from, next}];
        exit.first = place;
        exit.second += times;
    }
    void add(const Counts& counts) {
        for (const auto& pass : counts.passes) others(pass.from, pass.to) += pass.count;
        for (const auto& exit : counts.exits) leave(exit.from, exit.next, exit.place, exit.count);
    }
    void interrupted() {}
    void end(trace::BlockId from, const trace::TraceEnd& end) {
        leave(from, end.continuation, end.continuation_place);
    }

    // Gives every execution of a block once, as TransitionProfile::add takes it, and forgets it.
    template <class Visit>
    void drain(const trace::BlockTable& blocks, std::uint64_t weight, Visit visit) {
        const auto pass = [&](trace::BlockId from, trace::BlockId to, std::uint64_t count) {
            const auto& next = blocks.at(to);
            visit(blocks.at(from), next.start, next.place, count * weight);
        };
        for (const auto from : touched_) {
            auto& row = rows_[static_cast<std::uint32_t>(from)];
            for (std::size_t i = 0; i < row.to.size(); ++i) {
                if (const auto count = std::exchange(row.count[i], 0)) pass(from, row.to[i], count);
            }
        }
        touched_.clear();
        others_.for_each([&](std::uint64_t pair, std::uint64_t count) {
            pass(trace::BlockId{static_cast<std::uint32_t>(pair >> 32)},
                 trace::BlockId{static_cast<std::uint32_t>(pair)}, count);
        });
        others_.clear();
        for (const auto& [key, exit] : exits_)
            visit(blocks.at(key.first), key.second, exit.first, exit.second * weight);
        exits_.clear();
    }

  private:
    struct Row {
        std::array<trace::BlockId, 2> to{no_block, no_block};
        std::array<std::uint64_t, 2> count{};
    };
    void count(trace::BlockId from, trace::BlockId to) {
        auto& row = rows_[static_cast<std::uint32_t>(from)];
        const unsigned second = row.to[0] != to;
        if (row.to[second] != to) [[unlikely]]
            return count_another(row, from, to);
        if (row.count[second]++ == 0) touched_.push_back(from);
    }
    void count_another(Row& row, trace::BlockId from, trace::BlockId to);
    std::uint64_t& others(trace::BlockId from, trace::BlockId to) {
        return others_[(std::uint64_t{static_cast<std::uint32_t>(from)} << 32) |
                       static_cast<std::uint32_t>(to)];
    }

    std::vector<Row> rows_;                // by block
    std::vector<trace::BlockId> touched_;  // their rows have counts; may repeat
    FlatMap<std::uint64_t> others_;
    std::map<std::pair<trace::BlockId, Address>, std::pair<Location, std::uint64_t>> exits_;
};

// What follows from transitions.
class TransitionProfile {
  public:
    virtual ~TransitionProfile() = default;
    // In a sample, a block was executed so often and its exit then led to `next`, which is 0 where
    // that is not known.
    virtual void add(const trace::Block& from, Address next, const Location& place,
                     std::uint64_t count) = 0;
    virtual void end_sample() = 0;
    // See Profiler.
    virtual void yield(Hotlists& into, Seen seen) = 0;
};

class TransitionProfiler : public Profiler {
  public:
    using Profiles = std::vector<std::unique_ptr<TransitionProfile>>;
    TransitionProfiler(const trace::BlockTable& blocks, Profiles profiles)
        : blocks_(blocks), profiles_(std::move(profiles)) {}

    std::string_view name() const override { return "transitions"; }
    trace::CapturePlan captures() const override { return {}; }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override;
    void count(trace::SampleId sample, const Counts& counts) override;
    void end_sample(trace::SampleId sample, std::uint64_t weight) override;
    void yield(Hotlists& into, Seen seen) override;

  private:
    void fold(TransitionCounts& counts, std::uint64_t weight);

    const trace::BlockTable& blocks_;
    Profiles profiles_;
    OpenSamples<TransitionCounts> samples_;
};

}  // namespace shadowprof::profile
