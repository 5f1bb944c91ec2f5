#include "profile/common/variables.h"

namespace shadowprof::profile {

// Code that was made at run time, or changed, is not where its module's data are.
void Variables::learn(const trace::Block& block) {
    if (block.place.content == 0)
        modules_.try_emplace(block.start.value - block.place.offset, block.place.module);
}

// What begins at a place is the same one byte further on.
bool Variables::is_known(const Location& place) {
    return names_.function_of(place) != place || names_.function_of(place + 1) == place;
}

std::optional<Location> Variables::at(std::uint64_t address) {
    const auto [known, is_new] = known_.try_emplace(address);
    if (!is_new) return known->second;
    const auto after = modules_.upper_bound(address);
    if (after == modules_.begin()) return {};
    const auto& [begin, module] = *std::prev(after);
    const Location place{module, address - begin, 0};
    if (is_known(place)) known->second = place;
    return known->second;
}

}  // namespace shadowprof::profile
