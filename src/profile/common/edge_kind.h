// How control went from one block to the next.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace shadowprof::profile {

// `taken` are direct jumps and conditional ones that were taken, `indirect` are indirect jumps;
// `call` are all calls: the instruction's text says whether they are indirect.
enum class EdgeKind : std::uint8_t { taken, fallthrough, call, return_, indirect };

constexpr auto names_of(EdgeKind) {
    return std::array<std::pair<EdgeKind, std::string_view>, 5>{{
        {EdgeKind::taken, "taken"},
        {EdgeKind::fallthrough, "fallthrough"},
        {EdgeKind::call, "call"},
        {EdgeKind::return_, "return"},
        {EdgeKind::indirect, "indirect"},
    }};
}

}  // namespace shadowprof::profile
