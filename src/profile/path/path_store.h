// Paths by what they are, with counts, in bounded memory.
//
// A path is known by its key (path_facts.h). The blocks themselves are asked for and stored once,
// when a path is first seen.
//
// There can be more paths than memory, and nearly all of them are rare. When the store is full the
// rare ones leave by the rule of counting samples (counting_sample.h): each path is tossed so that
// one seen c times goes with the probability that its counter would have been lowered to zero; from
// then on new paths are admitted with probability p. What is turned away or leaves counts as
// unknown; what stays keeps its exact count since it was admitted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "profile/common/hotlists.h"
#include "profile/common/open_samples.h"
#include "profile/path/path_facts.h"
#include "trace/block.h"

namespace shadowprof::profile {

class PathStore {
  public:
    // What one open sample has counted.
    class Sample {
        friend class PathStore;
        std::vector<std::uint64_t> pending_;  // by path
        std::vector<std::uint32_t> touched_;
        std::uint64_t unknown_ = 0;
    };

    PathStore(std::size_t most_paths, std::uint64_t seed);

    Sample& open(trace::SampleId sample) { return samples_.open(sample); }
    template <class Blocks>
    void count(Sample& sample, PathKey key, Blocks blocks, std::uint64_t times = 1) {
        auto path = find(key);
        if (path == none) [[unlikely]] {
            const auto missed = times_missed(times);
            sample.unknown_ += missed;
            times -= missed;
            if (times == 0) return;
            path = admit(key, blocks());
        }
        if (path >= sample.pending_.size()) [[unlikely]]
            sample.pending_.resize(paths_.size());
        if (sample.pending_[path] == 0) sample.touched_.push_back(path);
        sample.pending_[path] += times;
    }
    // Whoever counts many in a row asks for those so far ahead to be fetched from memory.
    static constexpr std::size_t paths_ahead = 8;
    void prefetch(PathKey key) const { __builtin_prefetch(&cells_[home_of(key)]); }
    void count_unknown(Sample& sample, std::uint64_t paths) { sample.unknown_ += paths; }
    void close(trace::SampleId sample, std::uint64_t weight);
    void close_all();

    const Totals& totals() const { return totals_; }
    template <class Visit>
    void for_each(Visit visit) const {  // visit(blocks, statistics)
        for (const auto& path : paths_) visit(blocks_of(path), path.statistics);
    }

  private:
    static constexpr std::uint32_t none = ~0u;
    struct Cell {
        PathKey key = 0;
        std::uint32_t path = none;
    };
    struct Path {
        Statistics statistics;
        std::uint32_t first_block = 0;  // in blocks_
        std::uint32_t block_count = 0;
    };

    std::span<const trace::BlockId> blocks_of(const Path& path) const {
        return {blocks_.data() + path.first_block, path.block_count};
    }
    // The lower half's upper bits depend on all bits of all terms.
    std::size_t home_of(PathKey key) const { return static_cast<std::uint64_t>(key) >> shift_; }
    std::uint32_t find(PathKey key) const {
        auto at = home_of(key);
        while (cells_[at].path != none && cells_[at].key != key) at = (at + 1) & mask_;
        return cells_[at].path;
    }
    // Of so many occurrences of a path that is not here: those before the one that admits it.
    std::uint64_t times_missed(std::uint64_t times);
    std::uint32_t admit(PathKey key, std::span<const trace::BlockId> blocks);
    void make_cells(std::size_t power);
    void put(PathKey key, std::uint32_t path);
    void drop_rare_paths();
    void fold(Sample& sample, std::uint64_t weight);

    std::size_t most_paths_;
    Random random_;
    std::uint64_t probability_inverse_ = 1;  // of admission
    std::vector<Cell> cells_;                // at most half full
    unsigned shift_ = 0;
    std::size_t mask_ = 0;
    std::vector<Path> paths_;
    std::vector<trace::BlockId> blocks_;
    Totals totals_;
    OpenSamples<Sample> samples_;
};

}  // namespace shadowprof::profile
