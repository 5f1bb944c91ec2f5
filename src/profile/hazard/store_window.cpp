#include "profile/hazard/store_window.h"

#include <algorithm>

namespace shadowprof::profile {

namespace {

// Whether one of two ranges begins in the other, with addresses modulo a power of two.
bool overlap(std::uint64_t a, std::uint64_t bytes_of_a, std::uint64_t b, std::uint64_t bytes_of_b,
             std::uint64_t mask) {
    return ((a - b) & mask) < bytes_of_b || ((b - a) & mask) < bytes_of_a;
}

}  // namespace

void StoreWindow::add(std::uint64_t address, std::uint64_t bytes, std::uint64_t position,
                      std::uint32_t place) {
    auto& store = stores_[next_ % stores_.size()];
    store.address = address;
    store.bytes = bytes;
    store.position = position;
    store.number = next_;
    store.place = place;
    const auto first = address / piece, end = (address + bytes - 1) / piece;
    for (auto at = first; at <= end; ++at) {
        auto& last = last_[at % pieces];
        store.before[at - first] = last;
        last = next_;
    }
    ++next_;
}

std::optional<StoreWindow::Met> StoreWindow::met_by(std::uint64_t address, std::uint64_t bytes,
                                                    std::uint64_t position) const {
    constexpr auto in_4k = tuning::aliasing_distance - 1;
    const Store* youngest = nullptr;
    const auto first = address / piece, end = (address + bytes - 1) / piece;
    for (auto at = first; at <= end; ++at) {
        for (auto number = last_[at % pieces]; is_in_flight(number);) {
            const auto& candidate = store(number);
            if (youngest && candidate.number <= youngest->number) break;
            if (position - candidate.position > tuning::instructions_in_flight) break;
            if (overlap(address, bytes, candidate.address, candidate.bytes, in_4k)) {
                youngest = &candidate;
                break;
            }
            number = candidate.before[(at - candidate.address / piece) % pieces];
        }
    }
    if (!youngest) return {};
    const auto into_store = address - youngest->address;
    if (into_store < youngest->bytes && into_store + bytes <= youngest->bytes)
        return Met{youngest, Met::How::whole};
    if (overlap(address, bytes, youngest->address, youngest->bytes, ~std::uint64_t{0}))
        return Met{youngest, Met::How::part};
    return Met{youngest, Met::How::alias};
}

}  // namespace shadowprof::profile
