#include "profile/latency/cache_model.h"

#include <algorithm>
#include <bit>

#include "profile/tuning.h"

namespace shadowprof::profile {

SetAssociative::SetAssociative(std::uint64_t entries, std::uint32_t ways)
    : ways_(ways != 0 && ways <= entries
                ? ways
                : static_cast<std::uint32_t>(std::min<std::uint64_t>(
                      tuning::usual_ways, std::max<std::uint64_t>(entries, 1)))),
      sets_(std::max<std::uint64_t>(entries / ways_, 1)),
      entries_(sets_ * ways_, empty) {}

void SetAssociative::clear() {
    std::fill(entries_.begin(), entries_.end(), empty);
}

CacheModel::CacheModel(const machine::CacheGeometry& geometry)
    : geometry_(geometry),
      line_bits_(static_cast<unsigned>(std::bit_width(geometry.line) - 1)),
      page_bits_(static_cast<unsigned>(std::bit_width(geometry.page) - 1)),
      l1_(geometry.lines(0), geometry.levels[0].ways),
      l2_(geometry.lines(1), geometry.levels[1].ways),
      tlb_(geometry.pages_in_tlb, tuning::ways_of_tlb) {
    const auto lines = geometry.lines(2);
    if (lines != 0 && lines <= tuning::most_lines_simulated)
        l3_.emplace(lines, geometry.levels[2].ways);
}

void CacheModel::begin_stretch() {
    l1_.clear();
    l2_.clear();
    if (l3_) l3_->clear();
    tlb_.clear();
    seen_.clear();
}

CacheModel::Outcome CacheModel::access(std::uint64_t address) {
    Outcome outcome;
    outcome.page_walk = !tlb_.access(address >> page_bits_);
    const auto line = address >> line_bits_;
    if (l1_.access(line)) return outcome;
    outcome.level = machine::MemoryLevel::l2;
    if (geometry_.levels[1].size != 0 && l2_.access(line)) return outcome;
    const bool in_l3 = l3_ ? l3_->access(line) : geometry_.levels[2].size != 0;
    outcome.first = seen_.insert(line);
    outcome.level =
        in_l3 && !outcome.first ? machine::MemoryLevel::l3 : machine::MemoryLevel::memory;
    return outcome;
}

}  // namespace shadowprof::profile
