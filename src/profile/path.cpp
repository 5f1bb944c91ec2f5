#include "profile/path.h"

#include <algorithm>
#include <array>
#include <span>

#include "profile/tally.h"
#include "profile/walk.h"

namespace shadowprof::profile {

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
        profiler_.facts_.learn();
        walker_.digest(chunk, *this);
    }
    void finish(const trace::TraceEnd& end) override { walker_.finish(end, *this); }

    void run(trace::BlockId before, std::span<const trace::BlockId> ids) {
        static constexpr PathFacts::OfBlock outside{};
        const auto& facts = profiler_.facts_;
        const auto* from = before == no_block ? &outside : &facts.at(before);
        auto key = key_;
        auto length = length_;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const auto* const to = &facts.at(ids[i]);
            const bool back = from->ends_path_by_going_to(*to);
            if (back || length == most_blocks_in_path) {
                finish_path(key, ids.first(i), length);
                at_head_known_ |= back;
                key = 0;
                length = 0;
            }
            key += to->in_path(length);
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
        profiler_.store_.count(sample_, key, [&]() -> std::span<const trace::BlockId> {
            if (length <= run.size()) return run.last(length);
            std::copy(run.begin(), run.end(),
                      blocks_.begin() + static_cast<std::ptrdiff_t>(length - run.size()));
            return {blocks_.data(), length};
        });
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
    auto& sample = store_.open(sample_id);
    constexpr std::size_t paths_ahead = 8;
    for (std::size_t i = 0; i < counts.paths.size(); ++i) {
        if (i + paths_ahead < counts.paths.size())
            store_.prefetch(counts.paths[i + paths_ahead].key);
        const auto& path = counts.paths[i];
        store_.count(
            sample, path.key, [&] { return counts.blocks_of(path); }, path.count);
    }
    store_.count_unknown(sample, counts.unknown_paths);
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
