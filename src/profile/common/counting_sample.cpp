#include "profile/common/counting_sample.h"

#include <algorithm>

namespace shadowprof::profile {

void CountingSample::list(std::uint64_t value, Random& random) {
    slots_.insert(value);
    make_room(random);
}

void CountingSample::thin(std::uint64_t before, Random& random) {
    slots_.change_all([&](ValueSlot& slot) {
        if (random.below(inverse_) < before) return;
        slot.lose(std::min(slot.counter(), 1 + draw_failures(inverse_, random)));
    });
}

std::size_t CountingSample::memory(std::size_t slots) {
    return sizeof(CountingSample) + ValueSlots::memory_for(slots + 1);
}

}  // namespace shadowprof::profile
