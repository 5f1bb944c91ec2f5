// Sums of what profiles counted. A sum that grows too large is refused: it would be wrong.
#pragma once

#include <array>
#include <cstdint>

#include "model/statistics.h"

namespace shadowprof::model {

[[noreturn]] void throw_too_large();  // UserError

void add_up(std::uint64_t& into, std::uint64_t more);
void add_up(std::int64_t& into, std::int64_t more);
void add_up(Totals& into, const Totals& other);
void add_up(Statistics& into, const Statistics& other);
template <class T, std::size_t size>
void add_up(std::array<T, size>& into, const std::array<T, size>& other) {
    for (std::size_t i = 0; i < size; ++i) add_up(into[i], other[i]);
}

}  // namespace shadowprof::model
