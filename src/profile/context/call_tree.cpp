#include "profile/context/call_tree.h"

#include <algorithm>
#include <utility>

namespace shadowprof::profile {

namespace {
constexpr std::size_t roots = names_of(ContextRoot{}).size();
}

CallTree::CallTree(std::size_t most_nodes)
    : most_nodes_(most_nodes), functions_(rest + 1), arcs_(no_arc + 1), nodes_(roots) {}

FunctionId CallTree::function_at(const trace::Location& entry) {
    const auto [known, is_new] =
        ids_.try_emplace(entry, static_cast<FunctionId>(functions_.size()));
    if (is_new) functions_.push_back(entry);
    return known->second;
}

ArcId CallTree::arc(FunctionId caller, FunctionId callee) {
    if (caller <= rest || callee <= rest) return no_arc;
    auto& known = arc_ids_[std::uint64_t{caller} << 32 | callee];
    if (known == no_arc) {
        known = static_cast<ArcId>(arcs_.size());
        arcs_.push_back({caller, callee});
    }
    return known;
}

CallTree::Step CallTree::learn(NodeId from, FunctionId to) {
    const Step step{where(from, to), arc(function(from), to)};
    return steps_[std::uint64_t{from} << 32 | to] = step;
}

NodeId CallTree::where(NodeId from, FunctionId to) {
    if (is_rest(from)) return from;
    if (nodes_[from].depth == most_depth) return rest_of(from);
    std::size_t times = 0;
    NodeId innermost = 0;
    for (auto node = from; !is_root(node); node = parent(node))
        if (function(node) == to && times++ == 0) innermost = node;
    return times < most_of_one ? add(from, to) : innermost;
}

NodeId CallTree::add(NodeId parent, FunctionId function) {
    nodes_.push_back({parent, function, nodes_[parent].depth + 1});
    return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId CallTree::rest_of(NodeId node) {
    auto& known = steps_[std::uint64_t{node} << 32 | rest];
    if (known.node == 0) known.node = add(node, rest);
    return known.node;
}

ContextRoot CallTree::context_of(NodeId node, std::vector<trace::Location>& frames) const {
    frames.clear();
    for (; !is_root(node); node = parent(node)) frames.push_back(entry_of(function(node)));
    std::reverse(frames.begin(), frames.end());
    return static_cast<ContextRoot>(node);
}

std::vector<NodeId> CallTree::keep_only(const std::vector<bool>& kept) {
    const auto old = std::exchange(nodes_, std::vector<Node>(roots));
    steps_ = {};
    std::vector<NodeId> moved_to(old.size());
    for (NodeId node = 0; node < roots; ++node) moved_to[node] = node;
    for (NodeId node = roots; node < old.size(); ++node) {
        const auto to = moved_to[old[node].parent];
        if (is_rest(to) || old[node].function == rest || !kept[node]) {
            moved_to[node] = is_rest(to) ? to : rest_of(to);
        } else {
            moved_to[node] = add(to, old[node].function);
            steps_[std::uint64_t{to} << 32 | old[node].function] = {
                moved_to[node], arc(function(to), old[node].function)};
        }
    }
    return moved_to;
}

}  // namespace shadowprof::profile
