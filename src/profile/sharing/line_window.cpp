#include "profile/sharing/line_window.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace shadowprof::profile {

void LineWindow::touch(std::uint32_t thread, const Access& access, std::uint64_t line,
                       std::uint64_t bytes) {
    auto& first = lines_[line];
    for (auto at = first; at != 0; at = touches_[at - 1].next) {
        auto& known = touches_[at - 1];
        if (known.place != access.place || known.thread != thread) continue;
        known.bytes |= bytes;
        ++known.count;
        return;
    }
    touches_.push_back({bytes, 1, thread, access.place, first, access.writes, access.is_locked,
                        access.is_on_stack});
    first = static_cast<std::uint32_t>(touches_.size());
}

bool LineWindow::is_shared(std::uint32_t first) const {
    const auto& one = touches_[first - 1];
    for (auto at = one.next; at != 0; at = touches_[at - 1].next)
        if (touches_[at - 1].thread != one.thread) return true;
    return false;
}

// What others wrote takes the line from everybody; what they read, from who writes it.
LineWindow::Shared LineWindow::shared_of(std::uint64_t line, std::uint32_t first,
                                         const Touch& touch) const {
    const Touch* partner = nullptr;
    std::uint64_t taken = 0, others_bytes = 0;
    // Who else uses the same bytes comes before who does not, and a lock's other users first.
    const auto nearness = [&](const Touch& t) {
        const bool shares_bytes = (t.bytes & touch.bytes) != 0;
        return std::tuple(shares_bytes, shares_bytes && t.is_locked && touch.is_locked, t.count);
    };
    for (auto at = first; at != 0; at = touches_[at - 1].next) {
        const auto& other = touches_[at - 1];
        if (other.thread == touch.thread || !(other.writes || touch.writes)) continue;
        taken += other.count;
        others_bytes |= other.bytes;
        if (!partner || nearness(other) > nearness(*partner)) partner = &other;
    }
    if (!partner) return {};
    Shared shared;
    shared.kind = (others_bytes & touch.bytes) == 0       ? Sharing::false_
                  : touch.is_locked && partner->is_locked ? Sharing::lock
                                                          : Sharing::true_;
    shared.place = touch.place;
    shared.other_place = partner->place;
    const auto base = line * cache_line;
    shared.address = base + static_cast<unsigned>(std::countr_zero(touch.bytes));
    shared.other_address = base + static_cast<unsigned>(std::countr_zero(partner->bytes));
    shared.count = std::min(touch.count, taken);
    shared.is_on_stack = touch.is_on_stack || partner->is_on_stack;
    return shared;
}

}  // namespace shadowprof::profile
