// A hash table for hot loops: 64-bit keys, open addressing, no allocation on a hit.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/address.h"

namespace shadowprof {

// Any key but ~0.
template <class Value>
class FlatMap {
  public:
    FlatMap() : cells_(16, Cell{}) {}

    Value& operator[](std::uint64_t key) {
        auto* cell = &cell_of(key);
        if (cell->key == key) return cell->value;
        if (2 * (used_ + 1) > cells_.size()) {
            grow();
            cell = &cell_of(key);
        }
        ++used_;
        cell->key = key;
        return cell->value;
    }

    // Null if there is none.
    const Value* find(std::uint64_t key) const {
        const auto& cell = cells_[place_of(key)];
        return cell.key == key && key != empty ? &cell.value : nullptr;
    }

    template <class Visit>
    void for_each(Visit visit) {
        for (auto& cell : cells_)
            if (cell.key != empty) visit(cell.key, cell.value);
    }

    template <class Visit>
    void for_each(Visit visit) const {
        for (const auto& cell : cells_)
            if (cell.key != empty) visit(cell.key, cell.value);
    }

    void clear() {
        if (used_ == 0) return;
        for (auto& cell : cells_) cell = Cell{};
        used_ = 0;
    }

  private:
    static constexpr std::uint64_t empty = ~std::uint64_t{0};
    struct Cell {
        std::uint64_t key = empty;
        Value value{};
    };

    std::size_t place_of(std::uint64_t key) const {
        const auto mask = cells_.size() - 1;
        auto at = mix_bits(key) & mask;
        while (cells_[at].key != key && cells_[at].key != empty) at = (at + 1) & mask;
        return at;
    }
    Cell& cell_of(std::uint64_t key) { return cells_[place_of(key)]; }

    void grow() {
        auto old = std::exchange(cells_, std::vector<Cell>(2 * cells_.size()));
        for (auto& cell : old)
            if (cell.key != empty) cell_of(cell.key) = std::move(cell);
    }

    std::vector<Cell> cells_;  // a power of two, at most half full
    std::size_t used_ = 0;
};

}  // namespace shadowprof
