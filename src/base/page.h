// What memory is mapped, protected and copied by. Includes nothing that needs more than general
// registers (emu/core.h).
#pragma once

#include <cstdint>

namespace shadowprof {

inline constexpr std::uint64_t page_size = 4096;
inline constexpr std::uint64_t page_mask = ~(page_size - 1);

constexpr std::uint64_t round_up_to_page(std::uint64_t size) {
    return (size + page_size - 1) & page_mask;
}

}  // namespace shadowprof
