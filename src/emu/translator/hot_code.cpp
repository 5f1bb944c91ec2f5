#include "emu/translator/hot_code.h"

#include <algorithm>

namespace shadowprof::emu::translator {

void HotCode::look_at(std::span<const trace::SegmentId> executed, Random& random) {
    constexpr std::size_t looks = 96, hits_for_hot = 3, most_segments = 64;
    constexpr std::size_t fewest = 4096;
    if (executed.size() < fewest) return;
    for (std::size_t n = 0; n < looks; ++n) {
        const auto at = random.below(executed.size());
        auto& hits = hits_[segments_.at(executed[at]).front()];
        if (++hits == hits_for_hot)
            translator_.follow(executed.subspan(at, std::min(most_segments, executed.size() - at)));
    }
}

}  // namespace shadowprof::emu::translator
