// What one process of a family may cost: the part of the family's budget that it has, which changes
// as processes come and go and compute more or less, and what it may overdraw.
//
// The parts of all processes come to one. So whatever they are, all together cost what a single
// process would.
#pragma once

#include <mutex>
#include <utility>

#include "base/clock.h"
#include "sampling/schedule/time_source.h"

namespace shadowprof::sampling {

class Allotment {
  public:
    explicit Allotment(double part, Seconds credit, TimeSource now = Clock::now)
        : now_(std::move(now)), part_(part), credit_(credit), since_(now_()) {}

    // From now on.
    void set_part(double part) {
        const std::lock_guard lock{mutex_};
        time_ += part_ * passed();
        since_ = now_();
        part_ = part;
    }
    double part() const {
        const std::lock_guard lock{mutex_};
        return part_;
    }
    // Of all time so far, what was this process's.
    Seconds time() const {
        const std::lock_guard lock{mutex_};
        return time_ + part_ * passed();
    }
    Seconds credit() const { return credit_; }

  private:
    Seconds passed() const { return now_() - since_; }

    TimeSource now_;
    mutable std::mutex mutex_;
    double part_;
    const Seconds credit_;
    Clock::time_point since_;
    Seconds time_{0};
};

}  // namespace shadowprof::sampling
