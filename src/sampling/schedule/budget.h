// How the overhead (overhead.h) is spent: how long to wait after a sample that cost the target so
// much time.
//
// A sample that cost c may be followed by the next one after c / budget, on average. Waits are
// exponentially distributed, so that sampling cannot lock onto a rhythm of the program; where
// samples are rare they are more even, for of a few seconds none should be left out, and rhythms
// are faster than that. The mean is that of all samples so far, so that one expensive sample does
// not starve the next ones and the total keeps to the budget.
//
// A program that is traced at all pays for every signal and every thread it starts, whether it is
// sampled or not. That comes off the budget; but sampling keeps a tenth of it, for a program that
// overdraws the budget by itself would only lose its profile and not its cost.
//
// Who runs a program for three seconds wants to know something, too: a stake is spent soon after
// the beginning, beyond the budget.
//
// A process of a family has a part of the budget (allotment.h): its time is shorter than ours then,
// and its waits are longer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "sampling/schedule/allotment.h"
#include "sampling/schedule/time_source.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

class Budget {
  public:
    // `share`: of the target's time. Samples are to be no more frequent than `least_period` says.
    // `stake`: what may be spent once besides.
    Budget(double share, Seconds stake, std::optional<Seconds> least_period, Random random,
           TimeSource now, std::shared_ptr<const Allotment> allotment = nullptr)
        : share_(share),
          stake_(stake),
          least_period_(least_period),
          random_(random),
          now_(std::move(now)),
          allotment_(allotment ? std::move(allotment)
                               : std::make_shared<const Allotment>(1, tuning::credit, now_)),
          began_(now_()),
          time_before_(allotment_->time()) {}

    void spent_on_sample(Seconds cost) {
        spent_on_samples_ += cost;
        ++samples_;
        attempt_in_vain_ = Seconds{0};
    }
    // … that came to light later.
    void spent_on_last_sample(Seconds cost) { spent_on_samples_ += cost; }
    void spent_besides(Seconds cost) { spent_besides_ += cost; }
    // … on a stop that yields no sample.
    void spent_on_passing_stop(Seconds cost) {
        spent_besides(cost);
        const auto now = now_();
        const Seconds passed = now - std::exchange(last_passing_stop_, now);
        const auto left =
            owed_for_passing_stops_ - passed * share_ * tuning::part_for_passing_stops;
        owed_for_passing_stops_ = std::max(left, Seconds{0}) + cost;
    }
    // It was looked for a thread that runs, and there was none. A process that sleeps is looked at
    // again and again, and has no sample that says what that costs.
    void spent_in_vain(Seconds computed) {
        attempt_in_vain_ = std::min(computed, tuning::most_counted_in_vain);
    }
    // They come so often that others like them should be avoided.
    bool passing_stops_are_dear() const {
        return owed_for_passing_stops_ > tuning::credit_for_passing_stops;
    }

    // Between two samples, if the next ones cost what the others did.
    Seconds affordable_wait() const {
        const auto affordable = samples_ == 0 ? tuning::first_mean_wait
                                              : spent_on_samples_ / static_cast<double>(samples_) /
                                                    share_now() / allotment_->part();
        return std::max({affordable, attempt_in_vain_ / share_ / allotment_->part(),
                         least_period_.value_or(Seconds{0})});
    }
    // What there is between two samples, on average, until what was overdrawn is paid back.
    Seconds mean_wait() const {
        return std::max(affordable_wait(),
                        until_earned(spent_on_samples_ - allotment_->credit() - stake_));
    }
    // How long it takes until a sample may be tried whose cost nobody knows, and which may come to
    // so much; less than nothing if it may be now.
    Seconds wait_before_risk(Seconds risk) const {
        return until_earned(spent_on_samples_ + risk - tuning::risk_at_once - stake_);
    }
    // What of a wait is this process's own time.
    Seconds own(Seconds wait) const { return wait * allotment_->part(); }
    // How long the next wait is in units of its mean, which is not known for certain yet.
    class Draw {
      public:
        Seconds wait(Seconds mean) const {
            return mean * (mean < tuning::rare_wait ? exponential_ : even_);
        }

      private:
        friend class Budget;
        double exponential_ = 0, even_ = 0;  // 1 on average
    };
    // The first sample is certain to be soon: in a brief program there is no time for another.
    Draw draw(bool is_first) {
        constexpr double soon = 2;
        Draw draw;
        draw.exponential_ = random_.exponential(1);
        draw.even_ = random_.unit() + random_.unit();
        if (is_first && draw.exponential_ > soon) draw.exponential_ = soon * random_.unit();
        return draw;
    }

  private:
    Seconds elapsed() const { return allotment_->time() - time_before_; }
    Seconds until_earned(Seconds sum) const {
        return (sum / share_left() - elapsed()) / allotment_->part();
    }
    // With what is left of the stake.
    double share_now() const {
        const auto left =
            stake_ - std::max(spent_on_samples_ - share_left() * elapsed(), Seconds{0});
        return share_left() + std::max(left, Seconds{0}) / tuning::stake_lasts;
    }
    double share_left() const {
        if (spent_besides_ == Seconds{0}) return share_;
        return std::max(share_ - spent_besides_ / elapsed(), share_ * tuning::kept_for_samples);
    }

    double share_;
    Seconds stake_;
    std::optional<Seconds> least_period_;
    Random random_;
    TimeSource now_;
    std::shared_ptr<const Allotment> allotment_;
    Clock::time_point began_;
    Seconds time_before_;
    Seconds spent_on_samples_{0};
    Seconds spent_besides_{0};
    Clock::time_point last_passing_stop_ = began_;
    Seconds owed_for_passing_stops_{0};
    std::uint64_t samples_ = 0;
    Seconds attempt_in_vain_{0};  // the last one, since the last sample
};

}  // namespace shadowprof::sampling
