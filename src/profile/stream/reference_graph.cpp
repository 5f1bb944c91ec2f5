#include "profile/stream/reference_graph.h"

#include <algorithm>
#include <utility>

#include "profile/tuning.h"

namespace shadowprof::profile {

void ReferenceGraph::Node::follow(Key key) {
    ++followed;
    if (key == next) {
        ++votes, ++hits;
    } else if (votes == 0) {
        next = key;
        votes = hits = 1;
    } else {
        --votes;
    }
}

void ReferenceGraph::Node::add(const Node& other) {
    reference = other.reference;
    seen += other.seen;
    followed += other.followed;
    preceded += other.preceded;
    statistics.merge(other.statistics);
    if (other.next == next) {
        votes += other.votes;
        hits += other.hits;
    } else if (other.votes > votes) {
        next = other.next;
        votes = other.votes - votes;
        hits = other.hits;
    } else {
        votes -= other.votes;
    }
}

void ReferenceGraph::forget() {
    std::vector<std::uint64_t> seen;
    seen.reserve(size_);
    nodes_.for_each([&](Key, const Node& node) { seen.push_back(node.seen); });
    const auto middle = seen.begin() + static_cast<std::ptrdiff_t>(seen.size() / 2);
    std::ranges::nth_element(seen, middle);
    auto least = *middle;
    // Of equals all are forgotten where that alone makes room: there is no telling which will come
    // again. Otherwise none: many that came equally often are a long stream.
    constexpr std::size_t enough = 16;  // an … part
    const auto rarer = std::ranges::count_if(seen, [&](auto times) { return times < least; });
    if (static_cast<std::size_t>(rarer) < seen.size() / enough) ++least;
    std::vector<std::pair<Key, Node>> kept;
    nodes_.for_each([&](Key key, const Node& node) {
        if (node.seen >= least) kept.emplace_back(key, node);
    });
    clear();
    for (const auto& [key, node] : kept) nodes_[key] = node;
    size_ = kept.size();
}

std::vector<ReferenceGraph::Stream> ReferenceGraph::streams(std::size_t least_length) {
    FlatMap<Key> before;  // the node that nearly always comes before it, and is followed by it
    std::vector<Key> all;
    nodes_.for_each([&](Key key, const Node& node) {
        if (node.seen < 2) return;
        all.push_back(key);
        const auto next = usual_next(node);
        const auto* after = next == no_key ? nullptr : nodes_.find(next);
        if (after && after->seen >= 2 && is_nearly_all(node.hits, after->preceded))
            before[next] = key;
    });
    const auto before_of = [&](Key key) {
        const auto* found = before.find(key);
        return found ? *found : no_key;
    };
    FlatMap<bool> is_in_one;
    std::vector<Stream> found;
    const auto follow = [&](Key first) {
        Stream stream;
        for (auto at = first; at != no_key && !is_in_one[at];) {
            is_in_one[at] = true;
            stream.nodes.push_back(at);
            const auto next = usual_next(*nodes_.find(at));
            at = next != no_key && before_of(next) == at ? next : no_key;
        }
        return stream;
    };
    // What goes round begins where the lowest address is, wherever it was entered.
    const auto begin_lowest = [&](Stream& stream) {
        const auto where = [&](Key key) {
            const auto& r = nodes_.find(key)->reference;
            return std::pair(r.address, r.place);
        };
        std::ranges::rotate(stream.nodes, std::ranges::min_element(stream.nodes, {}, where));
    };
    FlatMap<std::uint32_t> begins;  // the stream whose first node it is, and 1
    for (const auto key : all) {
        if (before_of(key) != no_key) continue;
        auto stream = follow(key);
        // A node of its own may be how the first reference of another stream came.
        if (stream.nodes.size() == 1) {
            is_in_one[key] = false;
            continue;
        }
        const bool goes_round = usual_next(*nodes_.find(stream.nodes.back())) == key;
        if (goes_round) begin_lowest(stream);
        found.push_back(std::move(stream));
        if (!goes_round) begins[key] = static_cast<std::uint32_t>(found.size());
    }
    // What is left goes round, and is never entered in the same way.
    for (const auto key : all) {
        if (before_of(key) == no_key || is_in_one[key]) continue;
        auto stream = follow(key);
        begin_lowest(stream);
        found.push_back(std::move(stream));
    }
    nodes_.for_each([&](Key key, const Node& node) {
        const auto next = usual_next(node);
        const auto* begun = next == no_key ? nullptr : begins.find(next);
        if (begun && *begun != 0 && !is_in_one[key]) found[*begun - 1].beginnings.push_back(key);
    });
    std::erase_if(found, [&](const Stream& stream) {
        double seen = 0;
        for (const auto key : stream.nodes) seen += static_cast<double>(nodes_.find(key)->seen);
        return seen < tuning::least_recurrences * static_cast<double>(stream.nodes.size()) ||
               stream.nodes.size() + (stream.beginnings.empty() ? 0 : 1) < least_length;
    });
    return found;
}

}  // namespace shadowprof::profile
