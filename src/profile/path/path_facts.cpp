#include "profile/path/path_facts.h"

namespace shadowprof::profile {

void PathFacts::learn() {
    for (auto i = static_cast<std::uint32_t>(facts_.size()); i < blocks_.size(); ++i) {
        const auto& block = blocks_.at(trace::BlockId{i});
        facts_.push_back({combine_hashes(hash_of(block.place), block.instructions.size()),
                          block.start, backward_targets(block)});
    }
}

}  // namespace shadowprof::profile
