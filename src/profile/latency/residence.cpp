#include "profile/latency/residence.h"

#include "profile/tuning.h"

namespace shadowprof::profile {

std::optional<machine::MemoryLevel> Recaptures::level(const machine::CacheGeometry& caches) const {
    for (std::size_t level = 0; level < caches.levels.size(); ++level) {
        const auto lines = caches.lines(level);
        if (lines == 0) continue;
        const auto if_it_fits = expected / lines;
        if (recaptured != 0 && recaptured >= if_it_fits)
            return static_cast<machine::MemoryLevel>(level);
        const bool is_last = level + 1 == caches.levels.size();
        if (is_last && if_it_fits < tuning::telling_recaptures) return {};
    }
    return machine::MemoryLevel::memory;
}

}  // namespace shadowprof::profile
