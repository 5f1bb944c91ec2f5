// A set of cache lines that is emptied at no cost.
#pragma once

#include <cstdint>
#include <vector>

#include "base/address.h"

namespace shadowprof::profile {

class LineSet {
  public:
    // False: it was there.
    bool insert(std::uint64_t line) {
        if (2 * (size_ + 1) > cells_.size()) grow();
        auto& cell = cell_of(line);
        if (cell.epoch == epoch_) return false;
        cell = {line, epoch_};
        ++size_;
        return true;
    }
    std::size_t size() const { return size_; }
    void clear() {
        ++epoch_;
        size_ = 0;
    }

  private:
    struct Cell {
        std::uint64_t line = 0;
        std::uint64_t epoch = 0;  // another one than the set's: it is empty
    };

    Cell& cell_of(std::uint64_t line) {
        auto at = mix_bits(line) & (cells_.size() - 1);
        while (cells_[at].epoch == epoch_ && cells_[at].line != line)
            at = (at + 1) & (cells_.size() - 1);
        return cells_[at];
    }
    void grow() {
        auto former = std::vector<Cell>(cells_.empty() ? 1024 : cells_.size() * 2);
        former.swap(cells_);
        for (const auto& cell : former)
            if (cell.epoch == epoch_) cell_of(cell.line) = cell;
    }

    std::vector<Cell> cells_;
    std::size_t size_ = 0;
    std::uint64_t epoch_ = 1;
};

}  // namespace shadowprof::profile
