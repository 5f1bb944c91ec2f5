// Concise samples, the simpler of Gibbons and Matias' two: every arrival counts with probability p,
// listed or not. When the list is full, p is lowered to p' and each counter becomes the number of
// heads in as many tosses with heads p'/p. A listed value occurred counter / p times by an unbiased
// estimate. It counts less than a counting sample does, so it is faster and less exact; it is here
// to compare with.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "profile/common/thinned_list.h"

namespace shadowprof::profile {

class ConciseSample : public ThinnedList<ConciseSample> {
  public:
    static constexpr std::size_t default_slots = 200;

    explicit ConciseSample(std::size_t slots) : ThinnedList(slots) {}

    void add(std::uint64_t value, Random& random) {
        if (arrivals_to_skip_ != 0) {
            --arrivals_to_skip_;
            return;
        }
        sample(value, random);
    }

    std::uint64_t estimate(const ValueSlot& slot) const { return slot.counter() * inverse_; }
    // One occurrence that was drawn is no more than one of many rare values.
    bool resolves(const ValueSlot& slot) const { return inverse_ == 1 || slot.counter() > 1; }

  private:
    friend class ThinnedList<ConciseSample>;

    void sample(std::uint64_t value, Random& random);
    void thin(std::uint64_t before, Random& random);
};

}  // namespace shadowprof::profile
