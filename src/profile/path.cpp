#include "profile/path.h"

#include <algorithm>
#include <array>
#include <span>

#include "profile/tally.h"
#include "profile/walk.h"

namespace shadowprof::profile {

namespace {

// A block as it counts in a path, whichever of its ids it has.
std::uint64_t key_of(const trace::Block& block) {
    return combine_hashes(hash_of(block.place), block.instructions.size());
}

constexpr auto position_factors = [] {
    std::array<std::uint64_t, most_blocks_in_path> factors{};
    for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = mix_bits(i) | 1;
    return factors;
}();

// What a block adds to the key of its path.
PathKey term(std::uint64_t block_key, std::size_t position) {
    return static_cast<PathKey>(block_key) * position_factors[position];
}

}  // namespace

// A visitor of its own walk.
class PathReader : public Reader {
  public:
    PathReader(PathProfiler& profiler, const trace::TraceStart& start)
        : profiler_(profiler),
          sample_(profiler.store_.open(start.sample)),
          walker_(profiler.blocks_),
          at_head_known_(start.from_thread_start) {
        PathStore::weigh(sample_, start.weight_in_all());
    }

    void digest(const trace::TraceChunk& chunk) override {
        profiler_.learn_blocks();
        walker_.digest(chunk, *this);
    }
    void finish(const trace::TraceEnd& end) override { walker_.finish(end, *this); }

    void run(trace::BlockId before, std::span<const trace::BlockId> ids) {
        static constexpr PathProfiler::Facts outside{};
        const auto* const facts = profiler_.facts_.data();
        const auto* from =
            before == no_block ? &outside : facts + static_cast<std::uint32_t>(before);
        auto key = key_;
        auto length = length_;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const auto* const to = facts + static_cast<std::uint32_t>(ids[i]);
            const bool back = from->path_ends.contain(to->start, to->path_ends.module);
            if (back || length == most_blocks_in_path) {
                finish_path(key, ids.first(i), length);
                at_head_known_ |= back;
                key = 0;
                length = 0;
            }
            key += term(to->key, length);
            ++length;
            from = to;
        }
        key_ = key;
        // What is unfinished may have begun before this run.
        const auto here = std::min(length, ids.size());
        std::copy(ids.end() - static_cast<std::ptrdiff_t>(here), ids.end(),
                  blocks_.begin() + static_cast<std::ptrdiff_t>(length - here));
        length_ = length;
    }
    void leave(trace::BlockId from, Address next, const Location& place) {
        const bool ends = length_ == most_blocks_in_path ||
                          is_taken_backward(profiler_.blocks_.at(from), next, place);
        conclude(ends);
    }
    void interrupted() { at_head_known_ = true; }
    void end(trace::BlockId from, const trace::TraceEnd& end) {
        if (end.thread_exited)
            conclude(true);
        else
            leave(from, end.continuation, end.continuation_place);
    }

  private:
    // A path of the last `length` blocks up to the end of `run`; those before it are in blocks_.
    void finish_path(PathKey key, std::span<const trace::BlockId> run, std::size_t length) {
        if (!at_head_known_) return profiler_.store_.count_unknown(sample_, 1);
        if (length <= run.size()) return profiler_.store_.count(sample_, key, run.last(length));
        std::copy(run.begin(), run.end(),
                  blocks_.begin() + static_cast<std::ptrdiff_t>(length - run.size()));
        profiler_.store_.count(sample_, key, {blocks_.data(), length});
    }
    // Of the path that is in blocks_: it is whole, or nobody knows how it would have gone on.
    void conclude(bool is_whole) {
        if (is_whole)
            finish_path(key_, {}, length_);
        else
            profiler_.store_.count_unknown(sample_, 1);
        key_ = 0;
        length_ = 0;
    }

    PathProfiler& profiler_;
    PathStore::Sample& sample_;
    Walker walker_;
    bool at_head_known_;  // that the blocks below began at a head
    PathKey key_ = 0;     // of the blocks below
    std::size_t length_ = 0;
    std::array<trace::BlockId, most_blocks_in_path> blocks_;
};

std::unique_ptr<Reader> PathProfiler::open(const trace::TraceStart& start) {
    return std::make_unique<PathReader>(*this, start);
}

void PathProfiler::count(trace::SampleId sample_id, const Counts& counts) {
    learn_blocks();
    auto& sample = store_.open(sample_id);
    for (const auto& path : counts.paths) {
        const auto blocks = counts.blocks_of(path);
        PathKey key = 0;
        for (std::size_t i = 0; i < blocks.size(); ++i)
            key += term(facts_[static_cast<std::uint32_t>(blocks[i])].key, i);
        store_.count(sample, key, blocks, path.count);
    }
    store_.count_unknown(sample, counts.unknown_paths);
}

void PathProfiler::learn_blocks() {
    for (auto i = static_cast<std::uint32_t>(facts_.size()); i < blocks_.size(); ++i) {
        const auto& block = blocks_.at(trace::BlockId{i});
        facts_.push_back({key_of(block), block.start, backward_targets(block)});
    }
}

void PathProfiler::yield(Hotlists& into, Seen seen) {
    store_.close_all();
    PathHotlist list{store_.totals(), {}};
    list.totals.exhaustive = seen == Seen::everything;
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
