#include "profile/path/path_store.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "profile/common/thinned_list.h"

namespace shadowprof::profile {

PathStore::PathStore(std::size_t most_paths, std::uint64_t seed)
    : most_paths_(most_paths), random_(seed) {
    make_cells(10);
}

void PathStore::make_cells(std::size_t power) {
    cells_.assign(std::size_t{1} << power, Cell{});
    shift_ = 64 - static_cast<unsigned>(power);
    mask_ = cells_.size() - 1;
}

void PathStore::put(PathKey key, std::uint32_t path) {
    auto at = home_of(key);
    while (cells_[at].path != none) at = (at + 1) & mask_;
    cells_[at] = {key, path};
}

std::uint64_t PathStore::times_missed(std::uint64_t times) {
    if (probability_inverse_ == 1) return 0;
    return std::min(times, draw_failures(probability_inverse_, random_));
}

std::uint32_t PathStore::admit(PathKey key, std::span<const trace::BlockId> blocks) {
    while (paths_.size() >= most_paths_) drop_rare_paths();
    if (2 * (paths_.size() + 1) > cells_.size()) {
        const auto old = cells_;
        make_cells(static_cast<std::size_t>(std::countr_zero(old.size())) + 1);
        for (const auto& cell : old)
            if (cell.path != none) put(cell.key, cell.path);
    }
    const auto path = static_cast<std::uint32_t>(paths_.size());
    paths_.push_back({{},
                      static_cast<std::uint32_t>(blocks_.size()),
                      static_cast<std::uint32_t>(blocks.size())});
    blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
    put(key, path);
    return path;
}

void PathStore::drop_rare_paths() {
    probability_inverse_ *= 2;
    const double kept_of_rest = 1 - 1 / static_cast<double>(probability_inverse_);
    std::vector<std::uint64_t> counts(paths_.size());
    for (std::size_t i = 0; i < paths_.size(); ++i) counts[i] = paths_[i].statistics.count;
    samples_.for_each([&](const Sample& sample) {
        for (const auto path : sample.touched_) counts[path] += sample.pending_[path];
    });

    std::vector<std::uint32_t> moved_to(paths_.size(), none);
    std::vector<Path> kept;
    std::vector<trace::BlockId> kept_blocks;
    for (std::size_t i = 0; i < paths_.size(); ++i) {
        const auto more = static_cast<double>(counts[i]) - 1;
        if (random_.chance(0.5 * std::pow(kept_of_rest, more))) {
            totals_.unknown += paths_[i].statistics.count;
            continue;
        }
        moved_to[i] = static_cast<std::uint32_t>(kept.size());
        const auto blocks = blocks_of(paths_[i]);
        kept.push_back(paths_[i]);
        kept.back().first_block = static_cast<std::uint32_t>(kept_blocks.size());
        kept_blocks.insert(kept_blocks.end(), blocks.begin(), blocks.end());
    }

    samples_.for_each([&](Sample& sample) {
        std::vector<std::uint64_t> pending(kept.size());
        std::vector<std::uint32_t> touched;
        for (const auto path : sample.touched_) {
            if (moved_to[path] == none) {
                sample.unknown_ += sample.pending_[path];
            } else {
                pending[moved_to[path]] = sample.pending_[path];
                touched.push_back(moved_to[path]);
            }
        }
        sample.pending_ = std::move(pending);
        sample.touched_ = std::move(touched);
    });

    const auto old = cells_;
    make_cells(static_cast<std::size_t>(std::countr_zero(old.size())));
    for (const auto& cell : old)
        if (cell.path != none && moved_to[cell.path] != none) put(cell.key, moved_to[cell.path]);
    paths_ = std::move(kept);
    blocks_ = std::move(kept_blocks);
}

void PathStore::close(trace::SampleId sample, std::uint64_t weight) {
    samples_.close(sample, [&](Sample& state) { fold(state, weight); });
}

void PathStore::close_all() {
    samples_.close_all([this](Sample& state) { fold(state, 1); });
}

void PathStore::fold(Sample& sample, std::uint64_t weight) {
    const auto unknown = weight * std::exchange(sample.unknown_, 0);
    auto total = unknown;
    for (const auto path : sample.touched_) total += weight * sample.pending_[path];
    for (std::size_t i = 0; i < sample.touched_.size(); ++i) {
        if (i + paths_ahead < sample.touched_.size())
            __builtin_prefetch(&paths_[sample.touched_[i + paths_ahead]], 1);
        const auto path = sample.touched_[i];
        paths_[path].statistics.add_sample(weight * std::exchange(sample.pending_[path], 0), total);
    }
    sample.touched_.clear();
    totals_.unknown += unknown;
    totals_.add_sample(total);
}

}  // namespace shadowprof::profile
