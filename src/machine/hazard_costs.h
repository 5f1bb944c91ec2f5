// What it costs on this machine when accesses to memory get in each other's way: measured by a
// small loop of each kind, beside the same loop without the hazard. Processors differ by far: equal
// addresses modulo 4 KB cost five cycles and more on some, next to nothing on others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace shadowprof::machine {

enum class Hazard : std::uint8_t {
    failed_forwarding,  // a load of bytes that an earlier store, not yet in the cache, has in part
    aliasing,           // a load whose address is an earlier store's modulo 4 KB, and no more
    split_load,         // of bytes in two cache lines
    split_store,
    page_split_load,  // … and in two pages
    page_split_store,
};
inline constexpr std::size_t hazard_kinds = 6;

constexpr auto names_of(Hazard) {
    return std::array<std::pair<Hazard, std::string_view>, hazard_kinds>{{
        {Hazard::failed_forwarding, "failed-forwarding"},
        {Hazard::aliasing, "4k-aliasing"},
        {Hazard::split_load, "line-split-load"},
        {Hazard::split_store, "line-split-store"},
        {Hazard::page_split_load, "page-split-load"},
        {Hazard::page_split_store, "page-split-store"},
    }};
}

// Of usual code; where it is not known how long a program took, its instructions stand for that.
inline constexpr double instructions_in_a_nanosecond = 3;

// Nanoseconds. Of a pair they depend on how many instructions are between the two: what was stored
// long ago has reached the cache.
struct HazardCosts {
    static constexpr std::array<std::uint32_t, 5> distances{0, 16, 32, 64, 128};
    using ByDistance = std::array<double, distances.size()>;

    std::array<ByDistance, hazard_kinds> nanoseconds{};  // of splits all are equal

    double of(Hazard kind, std::uint64_t distance) const;
    bool operator==(const HazardCosts&) const = default;
};

// Takes some milliseconds.
HazardCosts measure_hazard_costs();

}  // namespace shadowprof::machine
