// A set of cache lines that is emptied at no cost.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/address.h"

namespace shadowprof::profile {

class LineSet {
  public:
    // There will be room for so many from the first line on: it does not grow in a long session.
    explicit LineSet(std::size_t expected = fewest_cells / 2)
        : first_size_(std::bit_ceil(2 * expected)) {}

    // False: it was there.
    bool insert(std::uint64_t line) {
        if (2 * (size_ + 1) > cells_.size()) grow();
        auto& cell = cell_of(line);
        if (!is_empty(cell)) return false;
        cell = cell_with(line);
        ++size_;
        return true;
    }
    std::size_t size() const { return size_; }
    void clear() {
        size_ = 0;
        epoch_ = (epoch_ + 1) & epochs;
        if (epoch_ != 0) return;
        std::fill(cells_.begin(), cells_.end(), Cell{0});
        epoch_ = 1;
    }

  private:
    // A line's number and, below it, an epoch: another one than the set's, and it is empty. A
    // program's addresses have 56 bits at most.
    using Cell = std::uint64_t;
    static constexpr std::size_t fewest_cells = 1024;
    static constexpr unsigned epoch_bits = 12;
    static constexpr std::uint64_t epochs = (1u << epoch_bits) - 1;

    bool is_empty(Cell cell) const { return (cell & epochs) != epoch_; }
    Cell cell_with(std::uint64_t line) const { return line << epoch_bits | epoch_; }
    Cell& cell_of(std::uint64_t line) {
        auto at = mix_bits(line) & (cells_.size() - 1);
        while (!is_empty(cells_[at]) && cells_[at] != cell_with(line))
            at = (at + 1) & (cells_.size() - 1);
        return cells_[at];
    }
    void grow() {
        auto former = std::vector<Cell>(cells_.empty() ? first_size_ : cells_.size() * 2);
        former.swap(cells_);
        for (const auto cell : former)
            if (!is_empty(cell)) cell_of(cell >> epoch_bits) = cell;
    }

    std::size_t first_size_;
    std::vector<Cell> cells_;  // at most half full
    std::size_t size_ = 0;
    std::uint64_t epoch_ = 1;
};

}  // namespace shadowprof::profile
