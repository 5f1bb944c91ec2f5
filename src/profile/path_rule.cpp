#include "profile/path_rule.h"

namespace shadowprof::profile {

BackwardTargets backward_targets(const trace::Block& block) {
    const auto& branch = block.last();
    switch (block.exit) {
        case trace::BlockExit::conditional:
        case trace::BlockExit::jump:
            if (branch.target <= branch.address) return {branch.target, 0, block.place.module};
            return {};
        case trace::BlockExit::indirect_jump:
            // From 1 on: 0 stands for an unknown address.
            return {Address{1}, branch.address.value - 1, block.place.module};
        default:
            return {};
    }
}

}  // namespace shadowprof::profile
