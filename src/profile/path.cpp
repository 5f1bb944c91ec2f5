#include "profile/path.h"

#include <array>

#include "profile/tally.h"
#include "profile/walk.h"

namespace shadowprof::profile {

namespace {

// A block as it counts in a path, whichever of its ids it has.
PathKey key_of(const trace::Block& block) {
    const auto identity = combine_hashes(hash_of(block.place), block.instructions.size());
    return {identity, mix_bits(~identity)};
}

constexpr auto position_factors = [] {
    std::array<PathKey, most_blocks_in_path> factors{};
    for (std::size_t i = 0; i < factors.size(); ++i)
        factors[i] = {mix_bits(2 * i) | 1, mix_bits(2 * i + 1) | 1};
    return factors;
}();

}  // namespace

// A visitor of its own walk.
class PathReader : public Reader {
  public:
    PathReader(PathProfiler& profiler, const trace::TraceStart& start)
        : profiler_(profiler),
          sample_(profiler.store_.open(start.sample)),
          walker_(profiler.blocks_),
          at_head_known_(start.from_thread_start) {}

    void digest(const trace::TraceChunk& chunk) override {
        profiler_.learn_blocks();
        walker_.digest(chunk, *this);
    }
    void finish(const trace::TraceEnd& end) override { walker_.finish(end, *this); }

    void enter(trace::BlockId id) { append(id); }
    void pass(trace::BlockId from, trace::BlockId to) {
        const auto& next = facts(to);
        if (facts(from).path_ends.contain(next.start, next.module)) {
            finish_path();
            at_head_known_ = true;
        } else if (length_ == most_blocks_in_path) {
            finish_path();
        }
        append(to);
    }
    void leave(trace::BlockId from, Address next, const Location& place) {
        if (length_ == most_blocks_in_path ||
            is_taken_backward(profiler_.blocks_.at(from), next, place))
            finish_path();
        else
            abandon_path();
    }
    void interrupted() { at_head_known_ = true; }
    void end(trace::BlockId from, const trace::TraceEnd& end) {
        if (end.thread_exited)
            finish_path();
        else
            leave(from, end.continuation, end.continuation_place);
    }

  private:
    const PathProfiler::Facts& facts(trace::BlockId id) const {
        return profiler_.facts_[static_cast<std::uint32_t>(id)];
    }
    void append(trace::BlockId id) {
        const auto& key = facts(id).key;
        const auto& factors = position_factors[length_];
        key_.low += key.low * factors.low;
        key_.high += key.high * factors.high;
        blocks_[length_++] = id;
    }
    void finish_path() {
        if (!at_head_known_) return abandon_path();
        profiler_.store_.count(sample_, key_, {blocks_.data(), length_});
        key_ = {};
        length_ = 0;
    }
    void abandon_path() {
        profiler_.store_.count_unknown(sample_, 1);
        key_ = {};
        length_ = 0;
    }

    PathProfiler& profiler_;
    PathStore::Sample& sample_;
    Walker walker_;
    bool at_head_known_;  // that the blocks below began at a head
    PathKey key_;         // of the blocks below
    std::size_t length_ = 0;
    std::array<trace::BlockId, most_blocks_in_path> blocks_;
};

std::unique_ptr<Reader> PathProfiler::open(const trace::TraceStart& start) {
    return std::make_unique<PathReader>(*this, start);
}

void PathProfiler::learn_blocks() {
    for (auto i = static_cast<std::uint32_t>(facts_.size()); i < blocks_.size(); ++i) {
        const auto& block = blocks_.at(trace::BlockId{i});
        facts_.push_back({key_of(block), block.start, backward_targets(block), block.place.module});
    }
}

void PathProfiler::yield(Hotlists& into) {
    store_.close_all();
    PathHotlist list{store_.totals(), {}};
    list.totals.exhaustive = exhaustive_;
    store_.for_each([&](std::span<const trace::BlockId> ids, const Statistics& statistics) {
        PathEntry entry;
        entry.statistics = statistics;
        for (const auto id : ids) {
            const auto& block = blocks_.at(id);
            entry.blocks.push_back(
                {block.place, static_cast<std::uint32_t>(block.instructions.size())});
        }
        list.entries.push_back(std::move(entry));
    });
    sort_hotlist(list.entries,
                 [](const PathEntry& e) -> const std::vector<PathBlock>& { return e.blocks; });
    into.paths = std::move(list);
}

std::uint64_t PathEntry::instructions() const {
    std::uint64_t sum = 0;
    for (const auto& block : blocks) sum += block.instructions;
    return sum;
}

}  // namespace shadowprof::profile
