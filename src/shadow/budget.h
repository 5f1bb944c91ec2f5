// The overhead budget: how long to wait after a sample that cost the target so much time.
//
// A sample that stopped the target for c may be followed by the next one after c / budget, on
// average. Waits are exponentially distributed, so that sampling cannot lock onto a rhythm of the
// program; and the mean is that of all samples so far, so that one expensive sample does not
// starve the next ones and the total keeps to the budget.
#pragma once

#include <optional>

#include "base/random.h"
#include "shadow/options.h"

namespace shadowprof::shadow {

class Budget {
  public:
    Budget(double share, std::optional<Seconds> least_period, Random random)
        : share_(share), least_period_(least_period), random_(random) {}

    // Before anything is known of the costs: soon, so that short programs are seen as well.
    Seconds first_wait() { return Seconds{random_.exponential(first_mean)}; }

    void spent(Seconds cost) {
        spent_ += cost;
        ++samples_;
    }
    Seconds next_wait() {
        const auto affordable =
            samples_ == 0 ? Seconds{first_mean} : spent_ / static_cast<double>(samples_) / share_;
        return Seconds{
            random_.exponential(std::max(affordable, least_period_.value_or(Seconds{0})).count())};
    }
    Seconds total() const { return spent_; }

  private:
    static constexpr double first_mean = 0.02;
    double share_;
    std::optional<Seconds> least_period_;
    Random random_;
    Seconds spent_{0};
    std::uint64_t samples_ = 0;
};

}  // namespace shadowprof::shadow
