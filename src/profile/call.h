// Profile type call: call instruction and target. Jumps to functions are no calls: they are edges,
// and the method profile counts them as tail calls.
#pragma once

#include "profile/tally.h"
#include "profile/transitions.h"

namespace shadowprof::profile {

class CallProfiler : public TransitionProfiler {
  public:
    explicit CallProfiler(const trace::BlockTable& blocks) : TransitionProfiler(blocks) {}

    std::string_view name() const override { return "call"; }
    void yield(Hotlists& into, Seen seen) override;

  private:
    struct Call {
        Location from;
        Location to;
        bool operator==(const Call&) const = default;
    };
    struct CallHash {
        std::size_t operator()(const Call& c) const {
            return combine_hashes(hash_of(c.from), hash_of(c.to));
        }
    };
    void fold(TransitionCounts& counts) override;

    Tally<Call, CallHash> calls_;
};

}  // namespace shadowprof::profile
