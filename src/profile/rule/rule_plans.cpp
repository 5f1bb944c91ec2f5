#include "profile/rule/rule_plans.h"

#include <algorithm>
#include <utility>

#include "profile/common/transitions.h"
#include "profile/path/path_rule.h"
#include "profile/stream/stream_detector.h"

namespace shadowprof::profile {

using trace::Capture;

std::optional<RuleHit> RulePlans::hit_of(std::size_t rule, const trace::Block& block,
                                         std::size_t n) const {
    const auto& instruction = block.instructions[n];
    const auto& wanted = rules_.rules()[rule];
    const auto truth = rules_.holds(wanted, {instruction, block.place_of(instruction)});
    if (truth == Truth::no) return {};
    RuleHit hit{.rule = static_cast<std::uint32_t>(rule),
                .instruction = static_cast<std::uint8_t>(n),
                .is_last = n + 1 == block.instructions.size(),
                .truth = truth};
    if (wanted.streams) {
        const auto* const memory = explicit_memory(instruction);
        hit.bytes = memory ? bytes_of_reference(instruction, *memory) : 0;
        if (hit.bytes == 0) return {};
        hit.is_by_rsp = memory->memory.base.is_general(decoder::rsp);
    }
    for (const auto& operand : rules_.operands_of(rule)) {
        const auto source = source_of(operand, instruction);
        const bool is_the_value =
            wanted.value == operand || (wanted.streams && operand == address_of_rule);
        if (source.kind == RuleSource::Kind::none && is_the_value) return {};
        auto& bound = hit.operands.emplace_back(RuleHit::Operand{operand, source});
        if (source.kind != RuleSource::Kind::slot) continue;
        bound.slot = slot_index(block, n, source.slot.kind, source.slot.operand);
        // Not captured: in a part of a block that was cut off, or of another run's plan.
        if (bound.slot == no_slot) return {};
    }
    if (wanted.by.error) hit.error = slot_index(block, n, Capture::error_before, 0);
    if (wanted.by.signals) hit.stack = slot_index(block, n, Capture::register_before, decoder::rsp);
    return hit;
}

const RulePlan& RulePlans::make(const trace::Block& block) {
    RulePlan plan{.state = StateSlots(block, rules_.locks())};
    plan.slots = static_cast<std::uint32_t>(block.slots.size());
    for (std::size_t n = 0; n < block.instructions.size(); ++n)
        for (std::size_t rule = 0; rule < rules_.rules().size(); ++rule)
            if (auto hit = hit_of(rule, block, n)) plan.hits.push_back(std::move(*hit));
    plan.awaits = is_call(block.exit) &&
                  std::any_of(plan.hits.begin(), plan.hits.end(), [&](const RuleHit& hit) {
                      return hit.is_last && rules_.awaits_returns(hit.rule);
                  });
    return *(plans_[static_cast<std::uint32_t>(block.id)] = &made_.emplace_back(std::move(plan)));
}

RuleExit exit_of(const trace::Block& from, Address next, const Location& place) {
    return {edge_kind(from, next), place, is_taken_backward(from, next, place)};
}

}  // namespace shadowprof::profile
