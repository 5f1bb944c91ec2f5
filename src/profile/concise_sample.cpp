#include "profile/concise_sample.h"

#include <random>

#include "profile/counting_sample.h"

namespace shadowprof::profile {

void ConciseSample::sample(std::uint64_t value, Random& random) {
    if (!slots_.count(value)) slots_.insert(value);
    while (slots_.size() > most_) lower_probability(random);
    arrivals_to_skip_ = draw_failures(inverse_, random);
}

void ConciseSample::lower_probability(Random& random) {
    const auto old = inverse_;
    inverse_ = lowered(inverse_);
    const double tails = 1 - static_cast<double>(old) / static_cast<double>(inverse_);
    slots_.change_all([&](ValueSlot& slot) {
        slot.lose(std::binomial_distribution<std::uint64_t>(slot.counter(), tails)(random));
    });
}

void ConciseSample::shorten(std::size_t slots, Random& random) {
    if (slots >= most_) return;
    most_ = slots;
    while (slots_.size() > most_) lower_probability(random);
    arrivals_to_skip_ = draw_failures(inverse_, random);
    slots_.release_memory();
}

}  // namespace shadowprof::profile
