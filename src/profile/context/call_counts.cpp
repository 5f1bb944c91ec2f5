#include "profile/context/call_counts.h"

#include <algorithm>
#include <unordered_map>

namespace shadowprof::profile {

std::vector<std::pair<NodeId, std::uint64_t>> CallCounts::inclusive(const CallTree& tree) const {
    std::unordered_map<NodeId, std::uint64_t> sums;
    std::vector<NodeId> order;
    self.for_each([&](NodeId node, std::uint64_t) {
        for (auto at = node; sums.try_emplace(at, 0).second; at = tree.parent(at)) {
            order.push_back(at);
            if (tree.is_root(at)) break;
        }
    });
    self.for_each([&](NodeId node, std::uint64_t count) { sums[node] += count; });
    std::sort(order.begin(), order.end(), std::greater<>());
    std::vector<std::pair<NodeId, std::uint64_t>> all;
    all.reserve(order.size());
    for (const auto node : order) {
        const auto sum = sums[node];
        all.emplace_back(node, sum);
        if (!tree.is_root(node)) sums[tree.parent(node)] += sum;
    }
    return all;
}

}  // namespace shadowprof::profile
