// What blocks and segments mean to who follows calls: stretches of blocks that stay in one function
// and neither call nor return. A segment is worked out when it is met first; reading it again costs
// as much as it has stretches, mostly one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/common/profiler.h"
#include "profile/context/call_tree.h"
#include "trace/block.h"
#include "trace/segment.h"

namespace shadowprof::profile {

struct Stretch {
    Address begin;
    Address end;                             // where its last block's call returns to
    trace::BlockId first{};                  // block
    FunctionId function = no_function;       // that it begins in; none if that is not known
    FunctionId last_function = no_function;  // that its last instruction is in
    std::uint32_t instructions = 0;
    std::uint32_t arguments = 0;  // trace::Block::arguments, of all its blocks
    trace::BlockExit exit{};
    bool is_entry = false;  // begins where the function begins
    bool begins_with_arguments = false;
    // Jumps on to the function that was meant, through a slot that the dynamic linker fills.
    bool is_stub = false;
    bool stays = false;  // its exit neither calls nor returns
};

class Stretches {
  public:
    Stretches(const trace::BlockTable& blocks, FunctionMap& functions, CallTree& tree)
        : blocks_(blocks), functions_(functions), tree_(tree) {}

    const Stretch& of(trace::BlockId id) {
        const auto number = static_cast<std::uint32_t>(id);
        if (number >= of_blocks_.size() || of_blocks_[number].instructions == 0) learn(id);
        return of_blocks_[number];
    }
    std::span<const Stretch> of(trace::SegmentId id, const trace::SegmentTable& segments) {
        const auto number = static_cast<std::uint32_t>(id);
        if (number >= of_segments_.size() || of_segments_[number].count == 0) learn(id, segments);
        const auto& [at, count] = of_segments_[number];
        return {stretches_.data() + at, count};
    }

    // The function that code is in; none if that is not known.
    FunctionId function_of(const trace::Location& place);
    FunctionId function_of_call_before(const trace::Location& return_place) {
        auto call = return_place;
        if (call.offset != 0) --call.offset;
        return function_of(call);
    }
    bool is_entry(const trace::Location& place) { return functions_.function_of(place) == place; }
    const trace::BlockTable& blocks() const { return blocks_; }
    const trace::Location& place_of(trace::BlockId id) const { return blocks_.at(id).place; }

  private:
    void learn(trace::BlockId id);
    void learn(trace::SegmentId id, const trace::SegmentTable& segments);

    const trace::BlockTable& blocks_;
    FunctionMap& functions_;
    CallTree& tree_;
    std::vector<Stretch> of_blocks_;
    struct Range {
        std::uint32_t at = 0, count = 0;
    };
    std::vector<Range> of_segments_;
    std::vector<Stretch> stretches_;
};

}  // namespace shadowprof::profile
