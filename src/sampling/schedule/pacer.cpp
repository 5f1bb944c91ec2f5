#include "sampling/schedule/pacer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sampling/tuning.h"

namespace shadowprof::sampling {

Pacer::Pacer(const Options& options, const std::atomic<double>& precision, Random random,
             std::unique_ptr<Prices> prices, TimeSource now)
    : now_(std::move(now)),
      precision_(precision),
      random_(random),
      prices_(std::move(prices)),
      budget_(options.overhead, options.period, random_.fork(), now_, options.allotment),
      since_(now_()),
      wait_(budget_.draw(true)) {}

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

std::uint32_t Pacer::next_weight() {
    ++samples_;
    return whole(samples_in_one());
}

std::uint32_t Pacer::whole(double weight) {
    const double below = std::floor(weight);
    return static_cast<std::uint32_t>(below) + (random_.chance(weight - below) ? 1 : 0);
}

void Pacer::finished(Seconds held) {
    const auto price = prices_->of_stop(held);
    ++cost_.stops;
    cost_.stop_time += held;
    cost_.price += price.likely;
    budget_.spent_on_sample(price.most);
    wait_for_next();
}

void Pacer::held_again(Seconds held) {
    ++cost_.stops;
    cost_.stop_time += held;
    pay(prices_->of_passing_stop() + held);
}

void Pacer::pay(Estimate<Seconds> price) {
    cost_.price += price.likely;
    budget_.spent_on_last_sample(price.most);
}

void Pacer::pay_once(Seconds held, Seconds computed) {
    cost_.stop_time += held;
    cost_.price += held + prices_->of_computing(computed).likely;
}

Seconds Pacer::pay_for_computing(Seconds time) {
    const auto price = prices_->of_computing(time);
    cost_.price += price.likely;
    budget_.spent_besides(price.most);
    return price.most;
}

void Pacer::pay_for_passing_stops(int stops) {
    for (; stops > 0; --stops) {
        const auto price = prices_->of_passing_stop();
        cost_.price += price;
        budget_.spent_on_passing_stop(price);
    }
}

}  // namespace shadowprof::sampling
