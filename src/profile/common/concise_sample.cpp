#include "profile/common/concise_sample.h"

#include <random>

namespace shadowprof::profile {

void ConciseSample::sample(std::uint64_t value, Random& random) {
    if (!slots_.count(value)) slots_.insert(value);
    make_room(random);
}

void ConciseSample::thin(std::uint64_t before, Random& random) {
    const double tails = 1 - static_cast<double>(before) / static_cast<double>(inverse_);
    slots_.change_all([&](ValueSlot& slot) {
        slot.lose(std::binomial_distribution<std::uint64_t>(slot.counter(), tails)(random));
    });
}

}  // namespace shadowprof::profile
