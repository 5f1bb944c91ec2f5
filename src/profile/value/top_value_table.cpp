#include "profile/value/top_value_table.h"

#include <algorithm>

namespace shadowprof::profile {

void TopValueTable::flush() {
    arrivals_to_flush_ = arrivals_between_flushes;
    keep_most_frequent(most_ / 2);
}

void TopValueTable::shorten(std::size_t slots, Random&) {
    if (slots >= most_) return;
    most_ = slots;
    keep_most_frequent(most_);
    slots_.release_memory();
}

void TopValueTable::keep_most_frequent(std::size_t keep) {
    if (slots_.size() <= keep) return;
    std::vector<std::uint64_t> counters;
    for (const auto& slot : slots_.all()) counters.push_back(slot.counter());
    std::nth_element(counters.begin(), counters.begin() + static_cast<std::ptrdiff_t>(keep),
                     counters.end(), std::greater{});
    const auto most_frequent_below = counters[keep];
    slots_.change_all([&](ValueSlot& slot) {
        if (slot.counter() <= most_frequent_below) slot.lose(slot.counter());
    });
}

}  // namespace shadowprof::profile
