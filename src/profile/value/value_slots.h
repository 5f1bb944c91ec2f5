// The listed values of one location, for every estimator: a dense array of slots, found through an
// open-addressed table. Most locations see few values, and there are many locations, so it starts
// with four slots and doubles.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "profile/common/hotlists.h"

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
        const auto number = look_up(value, [&](std::size_t n) { return slots_[n].value == value; });
        return number == none ? nullptr : &slots_[number];
    }

    // What find() will look at, as far as that is known without the slots; the first before the
    // second.
    void prefetch_table(std::uint64_t value) const {
        if (!index_.empty()) __builtin_prefetch(&index_[home_of(hash_of(value))]);
    }
    void prefetch_slot(std::uint64_t value) const {
        const auto number = look_up(value, [](std::size_t) { return true; });
        if (number != none) __builtin_prefetch(&slots_[number]);
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

    // A slot's number and a piece of its value's hash: of a value that is not listed, the slots,
    // which are many cache lines, need not be looked at.
    struct Entry {
        std::uint8_t number_plus_1 = 0;  // 0: there is none
        std::uint8_t piece = 0;
    };
    static constexpr std::size_t none = most_slots + 1;

    static std::uint64_t hash_of(std::uint64_t value) { return value * 0x9e3779b97f4a7c15u; }
    std::size_t home_of(std::uint64_t hash) const { return hash >> shift_; }
    // The bits behind those that tell its home.
    std::uint8_t piece_of(std::uint64_t hash) const {
        return static_cast<std::uint8_t>(hash >> (shift_ - 8));
    }
    std::size_t next_to(std::size_t at) const { return (at + 1) & (index_.size() - 1); }
    // The first slot that may be the value's and is.
    template <class Is>
    std::size_t look_up(std::uint64_t value, Is is) const {
        if (index_.empty()) return none;
        const auto hash = hash_of(value);
        const auto piece = piece_of(hash);
        for (auto at = home_of(hash); index_[at].number_plus_1 != 0; at = next_to(at))
            if (index_[at].piece == piece && is(index_[at].number_plus_1 - 1u))
                return index_[at].number_plus_1 - 1u;
        return none;
    }
    void enter(std::size_t number);
    void rebuild_index();
    void remove_empty();

    std::vector<ValueSlot> slots_;
    std::vector<Entry> index_;  // a power of two, at most half full
    unsigned shift_ = 0;
    std::uint8_t most_;
    // A sample usually sees few of a location's values: which, unless there are more than fit.
    std::array<std::uint8_t, 15> touched_{};
    std::uint8_t touched_count_ = 0;
};

}  // namespace shadowprof::profile
