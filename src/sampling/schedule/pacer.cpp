#include "sampling/schedule/pacer.h"

#include <algorithm>
#include <utility>

#include "sampling/tuning.h"

namespace shadowprof::sampling {

Pacer::Pacer(const Options& options, const std::atomic<double>& precision, Random random,
             std::unique_ptr<Prices> prices, TimeSource now)
    : now_(std::move(now)),
      precision_(precision),
      prices_(std::move(prices)),
      budget_(options.overhead.for_samples(), options.stake, options.period, random.fork(), now_,
              options.allotment),
      since_(now_()),
      wait_(budget_.draw(true)),
      computed_(prices_->program_computed()),
      stood_for_(computed_),
      computed_before_{computed_} {}

Clock::time_point Pacer::due() const {
    const auto* const given = std::get_if<Seconds>(&wait_);
    if (given) return after(since_, *given);
    const auto mean = budget_.mean_wait() * samples_in_one();
    return after(since_, std::get<Budget::Draw>(wait_).wait(mean));
}

void Pacer::begin_to_wait(Wait wait) {
    since_ = now_();
    wait_ = wait;
}

double Pacer::samples_in_one() const {
    const double known = tuning::good_precision / precision_;
    return std::clamp(known * known, 1.0, tuning::most_samples_in_one);
}

Seconds Pacer::begins() {
    ++samples_;
    auto& before = computed_before_;
    const auto stands_for = (computed_ - before.front()) / static_cast<double>(before.size());
    stood_for_ += stands_for;
    before.push_back(computed_);
    if (before.size() > tuning::waits_that_a_sample_stands_for) before.pop_front();
    return stands_for;
}

void Pacer::takes_over() {
    computed_ = prices_->program_computed();
    computed_before_ = {computed_};
    stood_for_ = computed_;
}

void Pacer::finished(Seconds held, std::optional<Seconds> unseen) {
    const auto price = prices_->of_stop(held, unseen);
    ++cost_.stops;
    cost_.stop_time += held;
    cost_.add(Cause::stop, price.stop);
    cost_.add(Cause::computing, price.computing);
    budget_.spent_on_sample(price.stop + price.computing);
    wait_for_next();
}

void Pacer::held_again(Seconds held, std::optional<Seconds> unseen) {
    ++cost_.stops;
    cost_.stop_time += held;
    pay(Cause::stop, unseen.value_or(prices_->of_passing_stop()) + held);
}

void Pacer::pay(Cause cause, Seconds price) {
    cost_.add(cause, price);
    budget_.spent_on_last_sample(price);
}

void Pacer::pay_once(Seconds held, Seconds computed) {
    cost_.stop_time += held;
    cost_.add(Cause::set_up, held + prices_->of_computing(computed));
}

Seconds Pacer::pay_for_computing(Seconds time) {
    const auto price = prices_->of_computing(time);
    cost_.add(Cause::computing, price);
    budget_.spent_besides(price);
    return price;
}

void Pacer::pay_for_passing_stops(int stops) {
    for (; stops > 0; --stops) {
        const auto price = prices_->of_passing_stop();
        cost_.add(Cause::other_stops, price);
        budget_.spent_on_passing_stop(price);
    }
}

}  // namespace shadowprof::sampling
