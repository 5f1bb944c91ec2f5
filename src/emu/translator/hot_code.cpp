#include "emu/translator/hot_code.h"

#include <algorithm>

#include "emu/tuning.h"

namespace shadowprof::emu::translator {

bool HotCode::look_at(std::span<const trace::SegmentId> executed, Random& random) {
    if (executed.size() < tuning::fewest_segments_for_looks) return false;
    bool are_longer = false;
    for (std::size_t n = 0; n < tuning::looks_for_hot_code; ++n) {
        const auto at = random.below(executed.size());
        if (executed[at] == trace::segment_discontinuity) continue;
        auto& hits = hits_[segments_.at(executed[at]).front()];
        if (++hits != tuning::hits_of_hot_code) continue;
        auto next = executed.subspan(at);
        next = next.first(std::min(tuning::most_segments_followed, next.size()));
        const auto end = std::ranges::find(next, trace::segment_discontinuity);
        are_longer |= translator_.follow({next.begin(), end});
    }
    return are_longer;
}

}  // namespace shadowprof::emu::translator
