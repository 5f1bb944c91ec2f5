#include "emu/translator/hot_code.h"

#include <algorithm>

namespace shadowprof::emu::translator {

void HotCode::look_at(std::span<const trace::SegmentId> executed, Random& random) {
    constexpr std::size_t looks = 24, hits_for_hot = 3, most_segments = 24;
    constexpr std::size_t fewest = 4096, search = 64;
    if (executed.size() < fewest) return;
    for (std::size_t n = 0; n < looks; ++n) {
        auto at = 1 + random.below(executed.size() - 1);
        const auto end = std::min(at + search, executed.size());
        while (at < end && !begins_unit(executed[at - 1], executed[at])) ++at;
        if (at == end) continue;
        auto& hits = hits_[segments_.at(executed[at]).front()];
        if (++hits == hits_for_hot)
            translator_.follow(executed.subspan(at, std::min(most_segments, executed.size() - at)));
    }
}

bool HotCode::begins_unit(trace::SegmentId before, trace::SegmentId segment) const {
    if (before == trace::segment_discontinuity || segment == trace::segment_discontinuity)
        return false;
    const auto& from = code_.block(segments_.at(before).back());
    const auto to = code_.block(segments_.at(segment).front()).start;
    switch (from.exit) {
        case trace::BlockExit::conditional:
        case trace::BlockExit::jump:
            return to <= from.last().address;
        case trace::BlockExit::return_:
        case trace::BlockExit::indirect_jump:
        case trace::BlockExit::indirect_call:
        case trace::BlockExit::call:
            return true;
        default:
            return false;
    }
}

}  // namespace shadowprof::emu::translator
