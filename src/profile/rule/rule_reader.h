// Reads what a thread did, in order, for rules: with the values that were captured, or as segments,
// which have none. Rules that need neither order nor values are counted without a reader.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "profile/common/awaited_returns.h"
#include "profile/common/walk.h"
#include "profile/rule/rule_tally.h"
#include "trace/segment.h"

namespace shadowprof::profile {

class RuleReader : public Reader {
  public:
    RuleReader(RuleTally& tally, const trace::TraceStart& start);

    void digest(const trace::TraceChunk& chunk) override;
    void digest(const trace::SegmentChunk& chunk, const trace::SegmentTable& segments) override;
    void finish(const trace::TraceEnd& end) override;

    // Of its walk.
    void run(trace::BlockId before, std::span<const trace::BlockId> ids);
    void leave(trace::BlockId from, Address next, const Location& place);
    void interrupted(const trace::StackMove& move);
    void end(trace::BlockId from, const trace::TraceEnd& end);

  private:
    // The two counters: after about so many calls and taken backward branches a rule looks at so
    // many.
    struct Bursts {
        RuleParameters::Values parameters;
        bool is_read = false;  // this reader is one for the rule
        bool looks = true;
        std::uint64_t left = 0;  // until that changes; 0: it never does
        RuleTally::Counted counted;
    };
    // An event that is to be told when its call returns.
    struct Awaited {
        const trace::Block* block;
        const RuleHit* hit;
        RuleExit exit;
        std::vector<std::uint64_t> values;  // of the hit's operands
        std::optional<RuleKey> key;
    };

    void look_at_parameters();
    void step(const trace::Block& block);
    void left_by(const trace::Block& from, Address next, const Location& place);
    void forget_exit();
    void look_at(const trace::Block& block, const RuleHit& hit,
                 std::span<const std::uint64_t> values, const RuleExit* exit);
    void happened(const RuleHit& hit, const std::optional<RuleKey>& key,
                  std::optional<std::uint64_t> value);
    std::optional<RuleKey> key_of(const trace::Block& block, const RuleHit& hit,
                                  const RuleExit* exit);
    void returned_to(const Location& place, std::optional<std::uint64_t> value);
    auto give_up() {
        return [this](const Awaited& event) { happened(*event.hit, {}, {}); };
    }
    std::uint64_t draw_pause(std::uint32_t sparsity);
    void pass_event();
    void end_burst(std::size_t rule);

    RuleTally& tally_;
    RuleTally::Sample& counts_;
    trace::SampleId sample_;
    trace::TraceId trace_;
    bool has_values_ = false, counts_once_ = true, is_window_ = false;
    Walker walker_;
    std::vector<Bursts> bursts_;                      // by rule
    std::vector<ReferenceGraph::Cursor> references_;  // by rule: where the thread is in its streams
    bool any_bursts_ = false;
    StateTracker state_;
    AwaitedReturns<Awaited> awaited_;
    bool awaits_ = false;
    std::span<const std::uint64_t> values_;  // of the chunk, not yet read
    // The block whose exit is not known yet, and its values if they matter then.
    const trace::Block* unfinished_ = nullptr;
    std::vector<std::uint64_t> values_of_unfinished_;
    std::vector<std::uint64_t> operands_;  // of the hit at hand
    trace::BlockId previous_ = no_block;   // of segments
};

}  // namespace shadowprof::profile
