#include "profile/path/path_rule.h"

namespace shadowprof::profile {

BackwardTargets backward_targets(const trace::Block& block) {
    const auto& branch = block.last();
    const auto module = block.place.module;
    switch (block.exit) {
        case trace::BlockExit::conditional:
        case trace::BlockExit::jump:
            if (branch.target <= branch.address) return {branch.target, 0, module};
            return {BackwardTargets::nowhere, 0, module};
        case trace::BlockExit::indirect_jump:
            // From 1 on: 0 stands for an unknown address.
            return {Address{1}, branch.address.value - 1, module};
        default:
            return {BackwardTargets::nowhere, 0, module};
    }
}

}  // namespace shadowprof::profile
