// What the path rule asks of each block, worked out once, and what a path is known by.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/address.h"
#include "base/wide.h"
#include "profile/path/path_rule.h"
#include "trace/block.h"

namespace shadowprof::profile {

// A 128-bit hash of a path's blocks, which whoever follows it accumulates while going along: the
// sum of the products of each block's 64-bit key with a constant for its position.
using PathKey = Wide;

class PathFacts {
  public:
    struct OfBlock {
        std::uint64_t key = 0;  // the same for all ids of a block
        Address start;
        BackwardTargets path_ends;  // by going there

        bool ends_path_by_going_to(const OfBlock& next) const {
            return path_ends.contain(next.start, next.path_ends.module);
        }
        // What it adds to the key of its path.
        PathKey in_path(std::size_t position) const {
            return static_cast<PathKey>(key) * position_factors[position];
        }
    };

    explicit PathFacts(const trace::BlockTable& blocks) : blocks_(blocks) {}

    const trace::BlockTable& blocks() const { return blocks_; }

    void learn();  // of the blocks that have come since
    const OfBlock& at(trace::BlockId id) const { return facts_[static_cast<std::uint32_t>(id)]; }

  private:
    static constexpr auto position_factors = [] {
        std::array<std::uint64_t, most_blocks_in_path> factors{};
        for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = mix_bits(i) | 1;
        return factors;
    }();

    const trace::BlockTable& blocks_;
    std::vector<OfBlock> facts_;  // by id
};

}  // namespace shadowprof::profile
