// The calling contexts of a run as a tree (Ammons, Ball, Larus: "Exploiting hardware performance
// counters with flow and context sensitive profiling", 1997): a node is a function that was called
// where its parent is. It says where a call leads, and counts nothing.
//
// The tree stays small whatever the program does. A function that is already in its own context
// several times leads back to the innermost of these nodes. What lies too deep is in one node, the
// rest of its parent, and so are rare contexts when there are too many.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "profile/context/context_section.h"
#include "trace/location.h"

namespace shadowprof::profile {

using FunctionId = std::uint32_t;
using NodeId = std::uint32_t;
using ArcId = std::uint32_t;  // of a caller and what it calls

inline constexpr FunctionId no_function = 0;
inline constexpr ArcId no_arc = 0;

class CallTree {
  public:
    static constexpr std::size_t default_most_nodes = 1u << 16;
    static constexpr std::uint32_t most_depth = 200;
    // How often a function is in its own context before recursion is folded.
    static constexpr std::size_t most_of_one = 4;

    explicit CallTree(std::size_t most_nodes = default_most_nodes);

    FunctionId function_at(const trace::Location& entry);
    const trace::Location& entry_of(FunctionId function) const { return functions_[function]; }

    struct Arc {
        FunctionId caller, callee;
    };
    ArcId arc(FunctionId caller, FunctionId callee);
    const Arc& arc(ArcId id) const { return arcs_[id]; }

    static NodeId root(ContextRoot root) { return static_cast<NodeId>(root); }
    // Where a call leads to, and its arc, if it is known where it comes from.
    struct Step {
        NodeId node = 0;
        ArcId arc = no_arc;
    };
    Step step(NodeId from, FunctionId to) {
        auto& known = steps_[std::uint64_t{from} << 32 | to];
        return known.node != 0 ? known : learn(from, to);
    }

    std::size_t size() const { return nodes_.size(); }
    bool is_root(NodeId node) const { return nodes_[node].depth == 0; }
    bool is_rest(NodeId node) const { return nodes_[node].function == rest; }
    NodeId parent(NodeId node) const { return nodes_[node].parent; }
    FunctionId function(NodeId node) const { return nodes_[node].function; }
    // The root and the functions of a node that is neither a root nor a rest.
    ContextRoot context_of(NodeId node, std::vector<trace::Location>& frames) const;

    bool has_too_many_nodes() const { return nodes_.size() > most_nodes_; }
    // Keeps the nodes that have a true in `kept`, and the roots. Tells where each node went: those
    // not kept went to the rest of the nearest node that is.
    std::vector<NodeId> keep_only(const std::vector<bool>& kept);

  private:
    static constexpr FunctionId rest = 1;
    struct Node {
        NodeId parent = 0;
        FunctionId function = no_function;
        std::uint32_t depth = 0;
    };
    Step learn(NodeId from, FunctionId to);
    NodeId where(NodeId from, FunctionId to);
    NodeId add(NodeId parent, FunctionId function);
    NodeId rest_of(NodeId node);

    std::size_t most_nodes_;
    std::unordered_map<trace::Location, FunctionId, trace::LocationHash> ids_;
    std::vector<trace::Location> functions_;
    std::vector<Arc> arcs_;
    FlatMap<ArcId> arc_ids_;
    std::vector<Node> nodes_;  // parents before their children
    FlatMap<Step> steps_;
};

}  // namespace shadowprof::profile
