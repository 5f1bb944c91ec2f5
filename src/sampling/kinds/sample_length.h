// How long samples may be without favouring the code before certain system calls.
//
// A sample that has to end early, because it comes to a read from a socket, say, has seen the code
// before the call and never the code after it. If most samples end so, the profile is of the ends
// of requests. A thread is stopped anywhere in its code with equal chance, and so it is anywhere n
// instructions later, unless the sample ended before that. So samples are kept so short that only
// one of fifty ends early: then little is lost, wherever it lies.
//
// The length of the next sample follows from how those before it ended, never from what it meets.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sampling/tuning.h"

namespace shadowprof::sampling {

class SampleLength {
  public:
    // One in so many may end early.
    SampleLength(std::uint64_t shortest, std::uint64_t wanted,
                 double one_in = tuning::one_may_end_early_of)
        : grows_at_last_by_(std::pow(tuning::shrinks_by, 1 / (one_in - 1))),
          shortest_(std::min(shortest, wanted)),
          wanted_(wanted),
          next_(static_cast<double>(wanted)) {}

    std::uint64_t next() const { return static_cast<std::uint64_t>(next_); }
    // Even the shortest samples end early too often.
    bool is_too_long() const { return is_too_long_; }

    void ended_early() {
        is_too_long_ = is_too_long_ || (has_ended_early() && next() <= shortest_);
        next_ = std::max(next_ / tuning::shrinks_by, static_cast<double>(shortest_));
        // One early end is chance: a program may read its input just once. With each the steps up
        // become smaller, until those down come as rarely as they should.
        grows_by_ = has_ended_early() ? std::max(std::sqrt(grows_by_), grows_at_last_by_)
                                      : tuning::grows_at_first_by;
    }
    // As long as nothing speaks against it samples are as long as is wanted, the first one as well:
    // if that were short, the beginning of a program that runs for a second would count for next to
    // nothing, and a hundred such runs would all lack it.
    void ended_in_time() {
        const auto longest = static_cast<double>(wanted_);
        next_ = has_ended_early() ? std::min(next_ * grows_by_, longest) : longest;
    }

  private:
    bool has_ended_early() const { return grows_by_ > 0; }

    double grows_at_last_by_;  // in equilibrium: as many steps up as it takes for one down
    double grows_by_ = 0;      // if one has ended early
    std::uint64_t shortest_;
    std::uint64_t wanted_;
    double next_;
    bool is_too_long_ = false;
};

}  // namespace shadowprof::sampling
