// Which instructions of a block which rules are about, and where their values are among the
// block's.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "profile/common/state.h"
#include "profile/rule/rule_set.h"
#include "trace/block.h"

namespace shadowprof::profile {

// An instruction of a block that a rule may be about.
struct RuleHit {
    struct Operand {
        RuleOperand operand;
        RuleSource source;
        std::uint32_t slot = 0;  // among the block's
    };
    std::uint32_t rule = 0;
    std::uint8_t instruction = 0;
    bool is_last = false;  // of its block: where it leads matters
    Truth truth{};         // as far as the code says
    std::vector<Operand> operands = {};
    std::uint32_t error = no_slot;  // the slot that has errno, if the rule asks for it
    std::uint32_t stack = no_slot;  // … the stack pointer
    std::uint8_t bytes = 0;         // of a reference to data, if the rule asks for streams
    bool is_by_rsp = false;         // … which is near, and part of no stream
};

struct RulePlan {
    std::vector<RuleHit> hits = {};
    std::uint32_t slots = 0;
    StateSlots state;
    bool awaits = false;  // ends with a call whose result a rule may want to know
};

class RulePlans {
  public:
    RulePlans(const trace::BlockTable& blocks, const RuleSet& rules)
        : blocks_(blocks), rules_(rules) {}

    const RulePlan& of(trace::BlockId block) {
        const auto index = static_cast<std::uint32_t>(block);
        if (index >= plans_.size()) plans_.resize(blocks_.size());
        const auto* const plan = plans_[index];
        return plan ? *plan : make(blocks_.at(block));
    }

  private:
    const RulePlan& make(const trace::Block& block);
    std::optional<RuleHit> hit_of(std::size_t rule, const trace::Block& block, std::size_t n) const;

    const trace::BlockTable& blocks_;
    const RuleSet& rules_;
    std::vector<const RulePlan*> plans_;  // by block
    std::deque<RulePlan> made_;
};

// What is known of an execution: `values` are those of the hit's operands, in their order.
class RuleHitFacts : public RuleFacts {
  public:
    RuleHitFacts(const trace::Block& block, const RuleHit& hit,
                 std::span<const std::uint64_t> values, const RuleExit* of_exit,
                 std::optional<std::uint64_t> returned = {})
        : RuleFacts(block.instructions[hit.instruction],
                    block.place_of(block.instructions[hit.instruction])),
          hit_(hit),
          values_(values),
          returned_(returned) {
        exit = of_exit;
    }
    std::optional<std::uint64_t> value_of(const RuleOperand& operand) const override {
        for (std::size_t n = 0; n < hit_.operands.size(); ++n) {
            const auto& bound = hit_.operands[n];
            if (bound.operand != operand) continue;
            switch (bound.source.kind) {
                case RuleSource::Kind::constant:
                    return bound.source.constant;
                case RuleSource::Kind::slot:
                    return n < values_.size() ? std::optional(values_[n]) : std::nullopt;
                case RuleSource::Kind::awaited:
                    return returned_;
                case RuleSource::Kind::none:
                    return {};
            }
        }
        return {};
    }

  private:
    const RuleHit& hit_;
    std::span<const std::uint64_t> values_;
    std::optional<std::uint64_t> returned_;
};

// How the block's last instruction was left.
RuleExit exit_of(const trace::Block& from, Address next, const Location& place);

}  // namespace shadowprof::profile
