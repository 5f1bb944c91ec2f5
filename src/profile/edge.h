// Profile type edge: branch instruction and target, however the block that holds the branch was
// entered.
#pragma once

#include "profile/tally.h"
#include "profile/transitions.h"

namespace shadowprof::profile {

class EdgeProfiler : public TransitionProfiler {
  public:
    explicit EdgeProfiler(const trace::BlockTable& blocks) : TransitionProfiler(blocks) {}

    std::string_view name() const override { return "edge"; }
    void yield(Hotlists& into, Seen seen) override;

  private:
    struct Edge {
        Location from;
        Location to;
        EdgeKind kind{};
        bool operator==(const Edge&) const = default;
    };
    struct EdgeHash {
        std::size_t operator()(const Edge& e) const {
            return combine_hashes(combine_hashes(hash_of(e.from), hash_of(e.to)),
                                  static_cast<std::uint64_t>(e.kind));
        }
    };
    void fold(TransitionCounts& counts) override;

    Tally<Edge, EdgeHash> edges_;
};

}  // namespace shadowprof::profile
