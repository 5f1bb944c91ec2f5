#include "profile/value/value_slots.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/error.h"

namespace shadowprof::profile {

namespace {

constexpr std::size_t first_slots = 4;

}  // namespace

void ValueSlot::lose(std::uint64_t occurrences) {
    const auto folded = std::min(occurrences, statistics.count);
    statistics = statistics.scaled_to(statistics.count - folded);
    pending -= occurrences - folded;
}

ValueSlots::ValueSlots(std::size_t most) : most_(static_cast<std::uint8_t>(most)) {
    SHADOWPROF_ASSERT(0 < most && most <= most_slots, std::to_string(most) + " slots");
}

void ValueSlots::insert(std::uint64_t value) {
    SHADOWPROF_ASSERT(slots_.size() < most_, std::to_string(most_) + " slots are full");
    if (slots_.size() == slots_.capacity())
        slots_.reserve(std::min<std::size_t>(std::max(first_slots, 2 * slots_.size()), most_));
    slots_.push_back({value, 0, {}});
    if (2 * slots_.size() > index_.size())
        rebuild_index();
    else
        enter(slots_.size() - 1);
    increment(slots_.back());
}

void ValueSlots::enter(std::size_t number) {
    const auto hash = hash_of(slots_[number].value);
    auto at = home_of(hash);
    while (index_[at].number_plus_1 != 0) at = next_to(at);
    index_[at] = {static_cast<std::uint8_t>(number + 1), piece_of(hash)};
}

void ValueSlots::rebuild_index() {
    const auto size = std::bit_ceil(2 * std::max(first_slots, slots_.size()));
    index_.assign(size, {});
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(size));
    for (std::size_t number = 0; number < slots_.size(); ++number) enter(number);
}

void ValueSlots::remove_empty() {
    std::erase_if(slots_, [](const ValueSlot& slot) { return slot.counter() == 0; });
    rebuild_index();
    touched_count_ = static_cast<std::uint8_t>(touched_.size() + 1);
}

std::size_t ValueSlots::memory_for(std::size_t slots) {
    return slots * sizeof(ValueSlot) +
           std::bit_ceil(2 * std::max(first_slots, slots)) * sizeof(Entry);
}

}  // namespace shadowprof::profile
