// Where lines are that a load touches for the first time in a stretch: in a cache, if little else
// was touched since the program last used them, which was before anybody looked.
//
// How much that is can be told as the size of a population is told by marking and recapturing: the
// lines that a load touched in former stretches are marked. If it goes around among N lines, a line
// that it touches in another stretch is a marked one with probability (marked lines) / N. A load
// that never comes back to its lines recaptures none. The lines it goes around among, N of them,
// are about what is touched between two touches of one.
#pragma once

#include <cstdint>
#include <optional>

#include "machine/cache_geometry.h"

namespace shadowprof::profile {

// Of one load; numbers of several runs add up.
struct Recaptures {
    std::uint64_t first = 0;       // touches of lines that were new in their stretches
    std::uint64_t expected = 0;    // sum of marked lines at each of them: N times the recaptures
    std::uint64_t recaptured = 0;  // of them were marked

    // Nothing: too little was seen to tell.
    std::optional<machine::MemoryLevel> level(const machine::CacheGeometry& caches) const;
    bool operator==(const Recaptures&) const = default;
};

}  // namespace shadowprof::profile
