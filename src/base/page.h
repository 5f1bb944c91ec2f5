// Pages: the unit in which memory is mapped, protected and copied. This header includes nothing
// that needs more than general registers, for code of the translator that may not use others.
#pragma once

#include <cstdint>

namespace shadowprof {

inline constexpr std::uint64_t page_size = 4096;
inline constexpr std::uint64_t page_mask = ~(page_size - 1);

constexpr std::uint64_t round_up_to_page(std::uint64_t size) {
    return (size + page_size - 1) & page_mask;
}

}  // namespace shadowprof
