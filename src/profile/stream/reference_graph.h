// Which reference to data follows which, within bounded memory, and the streams in it: sequences of
// references that come again and again.
//
// A node is a reference together with the one before it. The same place and address after another
// reference is another node, so that data which two sequences share does not mix them up. Each node
// remembers the node that mostly came after it (Boyer and Moore's majority vote). Where a node is
// nearly always followed by the same one, and that one nearly always comes after it, the two belong
// together; what belongs together is a stream. This is what Sequitur's rules are to a grammar, but
// it does not depend on where the trace begins or how often a sequence was repeated without a
// pause, and graphs of several samples can be added up.
//
// When there are too many nodes, those that were seen least are forgotten. So sequences are found
// that come again before about half as many different references as there may be nodes have come in
// between.
#pragma once

#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "model/statistics.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

struct Reference {
    std::uint64_t address = 0;
    std::uint32_t place = 0;  // the caller's number of the instruction
    bool operator==(const Reference&) const = default;
};

class ReferenceGraph {
  public:
    using Key = std::uint64_t;
    static constexpr Key no_key = 0;

    struct Node {
        Reference reference;
        Key next = no_key;
        std::uint64_t seen = 0;
        // How often it is known what came next, and what came before: not where a Trace ended or
        // began.
        std::uint64_t followed = 0, preceded = 0;
        std::uint64_t hits = 0, votes = 0;  // hits: times that `next` came next, at least
        model::Statistics statistics;       // the caller's: what these times stand for

        void follow(Key key);
        void add(const Node& other);
    };
    // Where a thread is in its references.
    struct Cursor {
        Reference last;
        Key node = no_key;
        bool has_last = false;
        std::uint32_t forgotten = 0;  // the graph's, when the node was in it
    };
    // Nodes in the order in which they come.
    struct Stream {
        std::vector<Key> nodes;
        // The first reference of the sequence, after whatever came before: none where it has a
        // single place to come from, and is in `nodes`, or comes after the last one.
        std::vector<Key> beginnings;
    };

    explicit ReferenceGraph(std::size_t most = tuning::most_references) : most_(most) {}

    void add(Cursor& at, const Reference& reference) {
        if (at.has_last) {
            const auto key = key_of(at.last, reference);
            auto& node = nodes_[key];
            if (node.seen++ == 0) {
                node.reference = reference;
                ++size_;
            }
            if (at.node != no_key) {
                ++node.preceded;
                if (at.forgotten == forgotten_) nodes_[at.node].follow(key);
            }
            at.node = key;
            at.forgotten = forgotten_;
        }
        at.last = reference;
        at.has_last = true;
    }
    void add(Key key, const Node& more) {
        auto& node = nodes_[key];
        if (node.seen == 0) ++size_;
        node.add(more);
    }
    // To be called from time to time: forgets what there is no room for.
    void make_room() {
        if (size_ >= most_) forget();
    }
    std::size_t size() const { return size_; }
    const Node* find(Key key) const { return nodes_.find(key); }
    template <class Visit>
    void for_each(Visit visit) {
        nodes_.for_each(visit);
    }
    void clear() {
        if (size_ > 0) nodes_.clear();
        size_ = 0;
        ++forgotten_;
    }

    // Of so many references at least; each node is in one at most.
    std::vector<Stream> streams(std::size_t least_length);

  private:
    static Key key_of(const Reference& before, const Reference& r) {
        const auto hash = combine_hashes(combine_hashes(before.address, before.place),
                                         combine_hashes(r.address, r.place));
        return (hash >> 1) + 1;
    }
    static bool is_nearly_all(std::uint64_t part, std::uint64_t of) {
        return part > 0 &&
               static_cast<double>(part) >= tuning::nearly_always * static_cast<double>(of);
    }
    // The node that nearly always comes after such a one, whatever else comes before that.
    static Key usual_next(const Node& node) {
        return is_nearly_all(node.hits, node.followed) ? node.next : no_key;
    }
    void forget();

    std::size_t most_, size_ = 0;
    std::uint32_t forgotten_ = 0;  // how often
    FlatMap<Node> nodes_;
};

}  // namespace shadowprof::profile
