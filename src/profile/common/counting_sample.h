// Counting samples (Gibbons and Matias, "New sampling-based summary statistics for improving
// approximate query answers", 1998): the most frequent values of a stream in constant space,
// without tuning and with unbiased counts.
//
// There is a probability p, at first 1. An arriving value that is listed increments its counter;
// one that is not is listed with probability p and counter 1. When that makes more values than
// slots, p is lowered to p' and every value tossed again: it keeps its counter with probability
// p'/p; else it loses one and from then on keeps with probability p', until it keeps or has nothing
// left and its slot is free. At any time the list is what it would be had p' been in force from the
// start: each occurrence had the chance p' to list its value, and everything after the one that did
// was counted exactly. The occurrences missed before it are geometric with mean 1/p - 1, so a
// listed value occurred counter - 1 + 1/p times by an unbiased estimate.
//
// p is kept as its inverse, a whole number m, so that estimates are whole numbers too. It is
// lowered by an eighth: lowering it by half would throw half of the list away each time, and a
// value is lost when a toss takes all of its counter. With s slots and values that never come
// again, a value with share f has a counter near f m s when the list is full, and survives a toss
// with probability 1 - (1 - p'/p) exp(-f s p'/p): for f = 5 % and s = 200 a toss loses it once in
// some 65,000 times, for s = 50 once in some 80 (and it comes back, with a new counter). Each time
// the stream grows by an eighth there is one toss; a million distinct values make about 75 of them.
//
// Memory: at most CountingSample::memory(slots) bytes, 14 kB for 200 slots, and less than 1 kB
// where a location sees no more than eight values.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "profile/common/thinned_list.h"

namespace shadowprof::profile {

class CountingSample : public ThinnedList<CountingSample> {
  public:
    static constexpr std::size_t default_slots = 200;

    explicit CountingSample(std::size_t slots) : ThinnedList(slots) {}

    void add(std::uint64_t value, Random& random) {
        if (slots_.count(value)) [[likely]]
            return;
        if (arrivals_to_skip_ != 0) {
            --arrivals_to_skip_;
            return;
        }
        list(value, random);
    }

    std::uint64_t estimate(const ValueSlot& slot) const { return slot.counter() - 1 + inverse_; }
    // Values whose counter is smaller than what is estimated to have been missed are as likely one
    // of many rare ones: below the resolution of the list.
    bool resolves(const ValueSlot& slot) const { return slot.counter() >= inverse_; }

    static std::size_t memory(std::size_t slots);

  private:
    friend class ThinnedList<CountingSample>;

    void list(std::uint64_t value, Random& random);
    void thin(std::uint64_t before, Random& random);
};

}  // namespace shadowprof::profile
