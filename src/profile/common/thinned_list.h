// What the two samples of Gibbons and Matias have in common: a list of so many values, the
// probability p with which an arrival is listed, as its inverse, and how p is lowered when the list
// is full. How the counters are thinned then is the Sample's own: thin(before, random), with p's
// inverse from before.
#pragma once

#include <cstdint>
#include <utility>

#include "base/random.h"
#include "profile/value/value_slots.h"

namespace shadowprof::profile {

// Failures before the first success, at a chance of 1/inverse a trial.
std::uint64_t draw_failures(std::uint64_t inverse, Random& random);

// The next inverse of p when a list is full.
std::uint64_t lowered(std::uint64_t inverse);

template <class Sample>
class ThinnedList {
  public:
    std::uint64_t probability_inverse() const { return inverse_; }

    // From now on with so many slots.
    void shorten(std::size_t slots, Random& random) {
        if (slots >= most_) return;
        most_ = slots;
        make_room(random);
        slots_.release_memory();
    }

    ValueSlots& slots() { return slots_; }
    const ValueSlots& slots() const { return slots_; }

  protected:
    explicit ThinnedList(std::size_t slots) : slots_(slots + 1), most_(slots) {}

    void make_room(Random& random) {
        while (slots_.size() > most_) {
            const auto before = std::exchange(inverse_, lowered(inverse_));
            static_cast<Sample&>(*this).thin(before, random);
        }
        arrivals_to_skip_ = draw_failures(inverse_, random);
    }

    ValueSlots slots_;
    std::uint64_t inverse_ = 1;
    // Arrivals that will not be listed: one random number for many tosses.
    std::uint64_t arrivals_to_skip_ = 0;

  private:
    std::size_t most_;
};

}  // namespace shadowprof::profile
