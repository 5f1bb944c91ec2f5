// The table of top values of value profiling's first papers (Calder et al. 1997), which shadow
// profiling used with 50 entries: a listed value counts; a new one is listed if there is room; now
// and then the less frequent half is thrown out to make some. It needs tuning, and what it says of
// a value is what it counted since that value came in, too little by an unknown amount. It is here
// to compare with.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "profile/value/value_slots.h"

namespace shadowprof::profile {

class TopValueTable {
  public:
    static constexpr std::size_t default_slots = 50;
    static constexpr std::uint64_t arrivals_between_flushes = 2000;

    explicit TopValueTable(std::size_t slots) : slots_(slots), most_(slots) {}

    void add(std::uint64_t value, Random&) {
        if (--arrivals_to_flush_ == 0) flush();
        if (!slots_.count(value) && slots_.size() < most_) slots_.insert(value);
    }

    std::uint64_t probability_inverse() const { return 1; }
    std::uint64_t estimate(const ValueSlot& slot) const { return slot.counter(); }
    bool resolves(const ValueSlot&) const { return true; }

    // From now on with so many slots.
    void shorten(std::size_t slots, Random&);

    ValueSlots& slots() { return slots_; }
    const ValueSlots& slots() const { return slots_; }

  private:
    void flush();
    void keep_most_frequent(std::size_t keep);

    ValueSlots slots_;
    std::size_t most_;
    std::uint64_t arrivals_to_flush_ = arrivals_between_flushes;
};

}  // namespace shadowprof::profile
