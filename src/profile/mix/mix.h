// Profile type mix: how many instructions of which kind were executed, by the extension of the
// instruction set that they belong to and by what they do.
//
// It follows from how often each block was executed, so it costs what edges cost. Every instruction
// of a block has one kind: nothing is unknown.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profile/common/profile_type.h"
#include "profile/common/tally.h"
#include "profile/common/transitions.h"
#include "profile/mix/instruction_kind.h"
#include "profile/mix/mix_section.h"

namespace shadowprof::profile {

class MixProfile : public TransitionProfile {
  public:
    void add(const trace::Block& from, Address next, const Location& place,
             std::uint64_t count) override;
    void end_sample() override { kinds_.end_sample(); }
    void yield(Hotlists& into, Seen seen) override;

  private:
    // The kinds of a block's instructions, and how many there are of each.
    using Mix = std::vector<std::pair<InstructionKind, std::uint64_t>>;
    const Mix& mix_of(const trace::Block& block);

    std::unordered_map<trace::BlockId, Mix> by_block_;
    Tally<InstructionKind, InstructionKindHash> kinds_;
};

extern const ProfileType mix_type;

}  // namespace shadowprof::profile
