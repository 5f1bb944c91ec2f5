// What the threads of one sample did, by contexts, functions and arcs (call_tree.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "profile/context/call_tree.h"

namespace shadowprof::profile {

// By small numbers.
class NumberedCounts {
  public:
    void add(std::uint32_t number, std::uint64_t count) {
        if (count == 0) return;
        if (number >= counts_.size()) counts_.resize(std::max<std::size_t>(64, 2 * number));
        if (counts_[number] == 0) used_.push_back(number);
        counts_[number] += count;
    }
    // Calls use(number, count) for each that is not 0, in any order.
    template <class Use>
    void for_each(Use use) const {
        for (const auto number : used_) use(number, counts_[number]);
    }
    void clear() {
        for (const auto number : used_) counts_[number] = 0;
        used_.clear();
    }
    void renumber(const std::vector<std::uint32_t>& moved_to) {
        NumberedCounts moved;
        for_each(
            [&](std::uint32_t number, std::uint64_t count) { moved.add(moved_to[number], count); });
        *this = std::move(moved);
    }

  private:
    std::vector<std::uint64_t> counts_;
    std::vector<std::uint32_t> used_;
};

struct CallCounts {
    NumberedCounts self;   // instructions, by node
    NumberedCounts calls;  // by node
    // Instructions from call to return.
    NumberedCounts of_functions, of_arcs;
    NumberedCounts calls_of_arcs;

    void clear() {
        for (auto* counts : {&self, &calls, &of_functions, &of_arcs, &calls_of_arcs})
            counts->clear();
    }
    // The instructions of nodes with all that they lead to, as (node, instructions): parents after
    // their children.
    std::vector<std::pair<NodeId, std::uint64_t>> inclusive(const CallTree& tree) const;
};

}  // namespace shadowprof::profile
