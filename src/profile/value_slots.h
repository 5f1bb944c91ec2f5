// The listed values of one location, for every estimator: a dense array of slots, found through an
// open-addressed table of bytes. Most locations see few values, and there are many locations, so it
// starts with four slots and doubles.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "profile/statistics.h"

namespace shadowprof::profile {

// One cache line.
struct ValueSlot {
    std::uint64_t value = 0;
    std::uint64_t pending = 0;  // in the sample being read
    Statistics statistics;

    std::uint64_t counter() const { return statistics.count + pending; }
    // The oldest go first: a counter is what came since a value was listed.
    void lose(std::uint64_t occurrences);
};

class ValueSlots {
  public:
    // Slot numbers fit a byte, with one to spare.
    static constexpr std::size_t most_slots = 254;

    explicit ValueSlots(std::size_t most);

    std::size_t size() const { return slots_.size(); }
    const std::vector<ValueSlot>& all() const { return slots_; }

    // A value that came once more, if it is listed.
    bool count(std::uint64_t value) {
        auto* slot = find(value);
        if (slot == nullptr) return false;
        increment(*slot);
        return true;
    }

    ValueSlot* find(std::uint64_t value) {
        if (index_.empty()) return nullptr;
        for (auto at = home_of(value); index_[at] != 0; at = (at + 1) & (index_.size() - 1)) {
            auto& slot = slots_[index_[at] - 1u];
            if (slot.value == value) return &slot;
        }
        return nullptr;
    }

    // What find() will look at, as far as nothing is in its way; the first before the second.
    void prefetch_table(std::uint64_t value) const {
        if (!index_.empty()) __builtin_prefetch(&index_[home_of(value)]);
    }
    void prefetch_slot(std::uint64_t value) const {
        if (index_.empty()) return;
        if (const auto number = index_[home_of(value)]; number != 0)
            __builtin_prefetch(&slots_[number - 1u]);
    }

    // A value that is not listed, seen once.
    void insert(std::uint64_t value);

    // Lets each slot change; it goes if nothing of its counter is left.
    template <class Change>
    void change_all(Change change) {
        for (auto& slot : slots_) change(slot);
        remove_empty();
    }

    // The sample of n events that was read is complete.
    void fold(std::uint64_t n) {
        fold_pending([n](ValueSlot& slot, std::uint64_t x) { slot.statistics.add_sample(x, n); });
    }

    // take(slot, pending) for every slot with a pending count, which is then 0.
    template <class Take>
    void fold_pending(Take take) {
        if (touched_count_ <= touched_.size()) {
            for (std::size_t i = 0; i < touched_count_; ++i) {
                auto& slot = slots_[touched_[i]];
                take(slot, std::exchange(slot.pending, 0));
            }
        } else {
            for (auto& slot : slots_)
                if (slot.pending != 0) take(slot, std::exchange(slot.pending, 0));
        }
        touched_count_ = 0;
    }

    // That slots which are gone have left.
    void release_memory() { slots_.shrink_to_fit(); }

    // The most bytes that many slots take.
    static std::size_t memory_for(std::size_t slots);

  private:
    void increment(ValueSlot& slot) {
        if (slot.pending++ == 0) touch(slot);
    }
    void touch(const ValueSlot& slot) {
        if (touched_count_ < touched_.size())
            touched_[touched_count_] = static_cast<std::uint8_t>(&slot - slots_.data());
        if (touched_count_ <= touched_.size()) ++touched_count_;
    }
    std::size_t home_of(std::uint64_t value) const {
        return (value * 0x9e3779b97f4a7c15u) >> shift_;
    }
    void rebuild_index();
    void remove_empty();

    std::vector<ValueSlot> slots_;
    std::vector<std::uint8_t> index_;  // slot number + 1; a power of two, at most half full
    unsigned shift_ = 0;
    std::uint8_t most_;
    // A sample usually sees few of a location's values: which, unless there are more than fit.
    std::array<std::uint8_t, 15> touched_{};
    std::uint8_t touched_count_ = 0;
};

}  // namespace shadowprof::profile
