// How often blocks were executed: in each open sample, and, weighted, in all that are closed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "profile/common/counts.h"
#include "trace/block.h"

namespace shadowprof::profile {

class ExecutionsOfSample {
  public:
    void add(trace::BlockId block, std::uint64_t times) {
        const auto number = static_cast<std::uint32_t>(block);
        if (number >= times_.size()) times_.resize(2 * std::size_t{number} + 1);
        if (times_[number] == 0) touched_.push_back(number);
        times_[number] += times;
    }
    void add(const Counts& counts) {
        for (const auto& pass : counts.passes) add(pass.from, pass.count);
        for (const auto& exit : counts.exits) add(exit.from, exit.count);
    }
    template <class Visit>
    void for_each(Visit visit) const {
        for (const auto number : touched_) visit(trace::BlockId{number}, times_[number]);
    }
    // Gives each block and how often it was executed, and forgets it.
    template <class Visit>
    void drain(Visit visit) {
        for (const auto number : touched_)
            visit(trace::BlockId{number}, std::exchange(times_[number], 0));
        touched_.clear();
    }

  private:
    std::vector<std::uint64_t> times_;  // by block
    std::vector<std::uint32_t> touched_;
};

// By block.
class Executions {
  public:
    void add(ExecutionsOfSample& sample, std::uint64_t weight) {
        sample.drain([&](trace::BlockId block, std::uint64_t times) {
            const auto number = static_cast<std::uint32_t>(block);
            if (number >= times_.size()) times_.resize(2 * std::size_t{number} + 1);
            times_[number] += times * weight;
        });
    }
    // Of blocks that were executed.
    template <class Visit>
    void for_each(Visit visit) const {
        for (std::uint32_t i = 0; i < times_.size(); ++i)
            if (times_[i] != 0) visit(trace::BlockId{i}, times_[i]);
    }

  private:
    std::vector<std::uint64_t> times_;
};

}  // namespace shadowprof::profile
