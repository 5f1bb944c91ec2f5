#include "emu/translator/hot_code.h"

#include <algorithm>

namespace shadowprof::emu::translator {

bool HotCode::look_at(std::span<const trace::SegmentId> executed, Random& random) {
    constexpr std::size_t looks = 96, hits_for_hot = 3, most_segments = 64;
    constexpr std::size_t fewest = 4096;
    if (executed.size() < fewest) return false;
    bool are_longer = false;
    for (std::size_t n = 0; n < looks; ++n) {
        const auto at = random.below(executed.size());
        auto& hits = hits_[segments_.at(executed[at]).front()];
        if (++hits != hits_for_hot) continue;
        const auto behind = executed.subspan(at);
        are_longer |= translator_.follow(behind.first(std::min(most_segments, behind.size())));
    }
    return are_longer;
}

}  // namespace shadowprof::emu::translator
