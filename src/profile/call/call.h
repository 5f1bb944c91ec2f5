// Profile type call: call instruction and target. Jumps to functions are no calls: they are edges,
// and the method profile counts them as tail calls.
#pragma once

#include "profile/call/call_section.h"
#include "profile/common/profile_type.h"
#include "profile/common/tally.h"
#include "profile/common/transitions.h"

namespace shadowprof::profile {

class CallProfile : public TransitionProfile {
  public:
    void add(const trace::Block& from, Address next, const Location& place,
             std::uint64_t count) override;
    void end_sample() override { calls_.end_sample(); }
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

    Tally<Call, CallHash> calls_;
};

extern const ProfileType call_type;

}  // namespace shadowprof::profile
