// Profile type edge: branch instruction and target, however the block that holds the branch was
// entered.
#pragma once

#include "profile/common/profile_type.h"
#include "profile/common/tally.h"
#include "profile/common/transitions.h"
#include "profile/edge/edge_section.h"

namespace shadowprof::profile {

class EdgeProfile : public TransitionProfile {
  public:
    void add(const trace::Block& from, Address next, const Location& place,
             std::uint64_t count) override;
    void end_sample() override { edges_.end_sample(); }
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

    Tally<Edge, EdgeHash> edges_;
};

extern const ProfileType edge_type;

}  // namespace shadowprof::profile
