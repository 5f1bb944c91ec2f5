// When samples of one kind are taken, and what they have cost the program: the next one comes at a
// random time, after a wait whose mean follows from the budget and from what samples cost so far.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <variant>

#include "base/clock.h"
#include "base/random.h"
#include "sampling/options.h"
#include "sampling/schedule/budget.h"
#include "sampling/schedule/cost.h"
#include "sampling/schedule/prices.h"
#include "sampling/schedule/time_source.h"

namespace shadowprof::sampling {

class Pacer {
  public:
    // `precision`: of the profile so far (profile/common/convergence.h). Where more samples would
    // hardly tell more they become fewer, and each counts for more.
    Pacer(const Options& options, const std::atomic<double>& precision, Random random,
          std::unique_ptr<Prices> prices, TimeSource now = Clock::now);

    Prices& prices() { return *prices_; }
    const Prices& prices() const { return *prices_; }
    Clock::time_point now() const { return now_(); }

    // When the wait is over. What the last sample costs comes to light while the next is being
    // waited for: so it is asked anew each time.
    Clock::time_point due() const;
    void wait(Seconds time) { begin_to_wait(time); }
    // As long as the budget says.
    void wait_for_next() { begin_to_wait(budget_.draw(samples_ == 0)); }
    // The wait for a sample is over, and the thread is being sought.
    void waited() { computed_ = prices_->program_computed(); }

    // A sample begins. Returns how much of the time that the program computes, in all threads, it
    // stands for: what there was since the last one. That is smoothed, for samples that
    // count alike tell more; all together they stand for all that there was.
    Seconds begins();
    // What no sample stands for yet.
    Seconds rest() const { return prices_->program_computed() - stood_for_; }
    std::uint64_t samples() const { return samples_; }
    // Until now others have sampled the program.
    void takes_over();

    // A sample's thread, held for so long in all, has been let go. The next is waited for.
    // `unseen`: what follows the stop, where that is known better than as a rule.
    void finished(Seconds held, std::optional<Seconds> unseen = {});
    // It was held once more, for so long, and has been let go. `unseen`: as above.
    void held_again(Seconds held, std::optional<Seconds> unseen = {});
    // What the last sample costs besides.
    void pay(Cause cause, Seconds price);
    // What sampling costs once, however many samples there are: so long a thread was held, and the
    // caller has computed.
    void pay_once(Seconds held, Seconds computed = Seconds{0});
    // What the caller has just computed for so long, for no sample in particular: it comes off the
    // budget, and makes no sample dearer. Returns what it may have cost.
    Seconds pay_for_computing(Seconds time);
    // An attempt to take a sample, for which the caller has computed for so long, found that no
    // thread runs.
    void attempted_in_vain(Seconds computed) { budget_.spent_in_vain(computed); }
    // So many stops yielded no sample.
    void pay_for_passing_stops(int stops);
    bool passing_stops_are_dear() const { return budget_.passing_stops_are_dear(); }
    // Others cost the target so much meanwhile, which comes off the budget.
    void others_cost(Seconds price) { budget_.spent_besides(price); }
    const Cost& cost() const { return cost_; }

    Seconds affordable_wait() const { return budget_.affordable_wait(); }
    Seconds mean_wait() const { return budget_.mean_wait(); }
    // What a sample that may come to so much has to wait for.
    Seconds wait_before_risk(Seconds risk) const { return budget_.wait_before_risk(risk); }
    // What of a wait is this process's own time (allotment.h).
    Seconds own(Seconds wait) const { return budget_.own(wait); }

  private:
    using Wait = std::variant<Seconds, Budget::Draw>;

    void begin_to_wait(Wait wait);
    // Those that are left out for each that is taken, and that one.
    double samples_in_one() const;

    TimeSource now_;
    const std::atomic<double>& precision_;
    std::unique_ptr<Prices> prices_;
    Budget budget_;
    Clock::time_point since_;
    Wait wait_;
    Seconds computed_;                     // by the program, when the wait was over
    Seconds stood_for_;                    // until then by samples, and by what was before
    std::deque<Seconds> computed_before_;  // at the latest samples, and at the beginning
    std::uint64_t samples_ = 0;
    Cost cost_;
};

}  // namespace shadowprof::sampling
