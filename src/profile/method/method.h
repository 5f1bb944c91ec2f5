// Profile type method: per function, how often it was called and how often it looped, and how many
// instructions ran in it.
//
// Events are calls (a call instruction reached the function) and back edges (a taken backward
// branch, as in path_rule.h, that stays in the function). A jump to the entry of another function
// is a tail call: reported, but no event, or a function called through a PLT stub would count
// twice. Unknown are calls whose target was not seen, and backward branches that leave their
// function for the middle of another or lie where no function is known.
#pragma once

#include <unordered_map>

#include "profile/common/profile_type.h"
#include "profile/common/tally.h"
#include "profile/common/transitions.h"
#include "profile/method/method_section.h"

namespace shadowprof::profile {

class MethodProfile : public TransitionProfile {
  public:
    explicit MethodProfile(FunctionMap& functions) : functions_(functions) {}

    void add(const trace::Block& from, Address next, const Location& place,
             std::uint64_t count) override;
    void end_sample() override;
    void yield(Hotlists& into, Seen seen) override;

  private:
    // Looking a function up is slow, and the same few blocks come up sample after sample.
    struct FunctionsOfBlock {
        Location of_start;
        Location of_last;
    };
    struct Entered {
        std::uint64_t calls = 0;
        std::uint64_t tail_calls = 0;
        std::uint64_t back_edges = 0;
    };
    const FunctionsOfBlock& functions_of(const trace::Block& block);
    Location function_of(const Location& place);
    void add_call(const trace::Block& from, Address next, const Location& place,
                  std::uint64_t count);
    void add_jump(const trace::Block& from, Address next, const Location& place,
                  std::uint64_t count);

    FunctionMap& functions_;
    std::unordered_map<trace::BlockId, FunctionsOfBlock> known_blocks_;
    std::unordered_map<Location, Location, trace::LocationHash> known_places_;
    std::unordered_map<Location, Entered, trace::LocationHash> entered_;
    Tally<Location, trace::LocationHash> events_;
    Tally<Location, trace::LocationHash> instructions_;
};

extern const ProfileType method_type;

}  // namespace shadowprof::profile
