#include "profile/counting_sample.h"

#include <algorithm>
#include <cmath>

namespace shadowprof::profile {

std::uint64_t draw_failures(std::uint64_t inverse, Random& random) {
    if (inverse == 1) return 0;
    const double rate = -std::log1p(-1 / static_cast<double>(inverse));
    return static_cast<std::uint64_t>(random.exponential(1 / rate));
}

std::uint64_t lowered(std::uint64_t inverse) {
    return inverse + std::max<std::uint64_t>(1, inverse / 8);
}

void CountingSample::list(std::uint64_t value, Random& random) {
    slots_.insert(value);
    while (slots_.size() > most_) lower_probability(random);
    arrivals_to_skip_ = draw_failures(inverse_, random);
}

void CountingSample::lower_probability(Random& random) {
    const auto old = inverse_;
    inverse_ = lowered(inverse_);
    slots_.change_all([&](ValueSlot& slot) {
        if (random.below(inverse_) < old) return;
        slot.lose(std::min(slot.counter(), 1 + draw_failures(inverse_, random)));
    });
}

void CountingSample::shorten(std::size_t slots, Random& random) {
    if (slots >= most_) return;
    most_ = slots;
    while (slots_.size() > most_) lower_probability(random);
    arrivals_to_skip_ = draw_failures(inverse_, random);
    slots_.release_memory();
}

std::size_t CountingSample::memory(std::size_t slots) {
    return sizeof(CountingSample) + ValueSlots::memory_for(slots + 1);
}

}  // namespace shadowprof::profile
