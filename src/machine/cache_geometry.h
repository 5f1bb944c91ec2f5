// A machine's caches, as far as a model of them needs to know.
#pragma once

#include <array>
#include <cstdint>

namespace shadowprof::machine {

// Where the bytes of a load come from. What lies beyond the caches is memory.
enum class MemoryLevel : std::uint8_t { l1, l2, l3, memory };
inline constexpr std::size_t memory_levels = 4;

struct CacheGeometry {
    struct Level {
        std::uint64_t size = 0;  // in bytes; 0: there is none
        std::uint32_t ways = 0;  // 0: not known
        bool operator==(const Level&) const = default;
    };
    std::uint64_t line = 64;
    std::array<Level, 3> levels = {{{32u << 10, 8}, {1u << 20, 16}, {32u << 20, 16}}};
    std::uint32_t pages_in_tlb = 1536;  // that are known without a walk of the page tables
    std::uint64_t page = 4096;

    std::uint64_t lines(std::size_t level) const { return levels[level].size / line; }
    bool operator==(const CacheGeometry&) const = default;
};

}  // namespace shadowprof::machine
