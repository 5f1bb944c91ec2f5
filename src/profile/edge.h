// Profile type edge: branch instruction and target, however the block that holds the branch was
// entered.
#pragma once

#include "profile/tally.h"
#include "profile/transitions.h"

namespace shadowprof::profile {

class EdgeProfiler : public TransitionProfiler {
  public:
    EdgeProfiler(const trace::BlockTable& blocks, bool exhaustive)
        : TransitionProfiler(blocks), exhaustive_(exhaustive) {}

    std::string_view name() const override { return "edge"; }
    void yield(Hotlists& into) override;

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

    bool exhaustive_;
    Tally<Edge, EdgeHash> edges_;
};

}  // namespace shadowprof::profile
