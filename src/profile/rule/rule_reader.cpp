#include "profile/rule/rule_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "profile/common/transitions.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

// Whether such a Trace has what a rule reads.
bool is_for(const RuleSet& rules, std::size_t rule, trace::Contents contents) {
    switch (contents) {
        case trace::Contents::everything:
            return true;
        case trace::Contents::counts:
            return rules.reads_order(rule) && !rules.reads_values(rule);
        case trace::Contents::values:
            return rules.reads_values(rule);
        default:
            return false;
    }
}

}  // namespace

RuleReader::RuleReader(RuleTally& tally, const trace::TraceStart& start)
    : tally_(tally),
      counts_(tally.open(start.sample)),
      sample_(start.sample),
      trace_(start.trace),
      has_values_(start.contents != trace::Contents::counts),
      counts_once_(start.stands_for <= 0),
      is_window_(start.contents == trace::Contents::values),
      walker_(tally.blocks()),
      bursts_(tally.rules().rules().size()),
      references_(bursts_.size()),
      state_(tally.states(), tally.rules().state_keys(), start, &tally.rules().functions(),
             tally.rules().locks()) {
    const auto& rules = tally_.rules();
    for (std::size_t n = 0; n < bursts_.size(); ++n) {
        auto& bursts = bursts_[n];
        bursts.is_read = is_for(rules, n, start.contents);
        if (!bursts.is_read) continue;
        awaits_ = awaits_ || rules.awaits_returns(n);
    }
    look_at_parameters();
}

// A Trace begins anywhere in the rhythm of a rule, with the same chance.
void RuleReader::look_at_parameters() {
    const auto& rules = tally_.rules();
    any_bursts_ = false;
    for (std::size_t n = 0; n < bursts_.size(); ++n) {
        auto& bursts = bursts_[n];
        if (!bursts.is_read) continue;
        const auto now = rules.parameters(n);
        const auto& before = bursts.parameters;
        if (bursts.left == 0 || now.sparsity != before.sparsity || now.burst != before.burst) {
            end_burst(n);
            bursts.looks = true;
            bursts.left = 0;
            if (now.sparsity != 0) {
                const auto at = tally_.random().below(std::uint64_t{now.sparsity} + now.burst);
                bursts.looks = at < now.burst;
                bursts.left = bursts.looks ? now.burst - at : draw_pause(now.sparsity);
            } else {
                counts_.rules[n].is_covered = true;
            }
        }
        bursts.parameters = now;
        if (!now.enabled) counts_.rules[n].was_disabled = true;
        any_bursts_ = any_bursts_ || now.sparsity != 0;
    }
}

void RuleReader::digest(const trace::TraceChunk& chunk) {
    look_at_parameters();
    state_.now(chunk.state);
    RuleTally::make_room(counts_);
    values_ = chunk.values;
    walker_.digest(chunk, *this);
    SHADOWPROF_ASSERT(values_.empty(), std::to_string(values_.size()) + " values left over");
}

void RuleReader::digest(const trace::SegmentChunk& chunk, const trace::SegmentTable& segments) {
    look_at_parameters();
    state_.now(chunk.state);
    std::size_t discontinuities = 0;
    for (const auto id : chunk.segments) {
        if (id != trace::segment_discontinuity) {
            run(previous_, segments.at(id));
            previous_ = segments.at(id).back();
            continue;
        }
        const auto& next = chunk.continuations.at(discontinuities++);
        if (previous_ != no_block) leave(previous_, next.address, next.place);
        interrupted({});
        previous_ = no_block;
    }
}

void RuleReader::finish(const trace::TraceEnd& end) {
    if (previous_ != no_block) this->end(previous_, end);
    walker_.finish(end, *this);
    forget_exit();
    awaited_.give_up_all(give_up());
    for (std::size_t n = 0; n < bursts_.size(); ++n) end_burst(n);
}

void RuleReader::run(trace::BlockId before, std::span<const trace::BlockId> ids) {
    for (const auto id : ids) {
        const auto& block = tally_.blocks().at(id);
        if (before != no_block) left_by(tally_.blocks().at(before), block.start, block.place);
        step(block);
        before = id;
    }
}

void RuleReader::leave(trace::BlockId from, Address next, const Location& place) {
    left_by(tally_.blocks().at(from), next, place);
}

void RuleReader::interrupted(const trace::StackMove& move) {
    forget_exit();
    std::ranges::fill(references_, ReferenceGraph::Cursor{});
    if (has_values_) values_ = values_.subspan(1);
    state_.interrupted(move);
}

void RuleReader::end(trace::BlockId from, const trace::TraceEnd& end) {
    left_by(tally_.blocks().at(from), end.continuation, end.continuation_place);
}

// An executed block, up to its last instruction if it matters where that leads.
void RuleReader::step(const trace::Block& block) {
    const auto& plan = tally_.plan_of(block.id);
    std::span<const std::uint64_t> values;
    if (has_values_) {
        SHADOWPROF_ASSERT(plan.slots <= values_.size(), "values of a block are missing");
        values = values_.first(plan.slots);
        values_ = values_.subspan(plan.slots);
        state_.begins(plan.state, values);
        state_.ends(plan.state, values);
    }
    bool waits = awaits_ && plan.state.returned != no_slot;
    for (const auto& hit : plan.hits) {
        if (!bursts_[hit.rule].is_read) continue;
        if (hit.is_last)
            waits = true;
        else
            look_at(block, hit, values, nullptr);
    }
    unfinished_ = &block;
    values_of_unfinished_.assign(values.begin(), waits ? values.end() : values.begin());
}

void RuleReader::left_by(const trace::Block& from, Address next, const Location& place) {
    unfinished_ = nullptr;
    const auto& plan = tally_.plan_of(from.id);
    if (awaits_ && plan.awaits) awaited_.call(from.place + from.size(), give_up());
    std::optional<RuleExit> exit;
    for (const auto& hit : plan.hits) {
        if (!hit.is_last || !bursts_[hit.rule].is_read) continue;
        if (!exit) exit = exit_of(from, next, place);
        look_at(from, hit, values_of_unfinished_, &*exit);
    }
    state_.pass(from, place);
    if (awaits_ && from.exit == trace::BlockExit::return_)
        returned_to(place, plan.state.returned < values_of_unfinished_.size()
                               ? std::optional(values_of_unfinished_[plan.state.returned])
                               : std::nullopt);
    if (any_bursts_ && (is_call(from.exit) || exit_of(from, next, place).backward)) pass_event();
}

// Where the unfinished block led will never be known.
void RuleReader::forget_exit() {
    if (!unfinished_) return;
    const auto& block = *std::exchange(unfinished_, nullptr);
    const RuleExit unknown;
    for (const auto& hit : tally_.plan_of(block.id).hits)
        if (hit.is_last && bursts_[hit.rule].is_read)
            look_at(block, hit, values_of_unfinished_, &unknown);
}

void RuleReader::look_at(const trace::Block& block, const RuleHit& hit,
                         std::span<const std::uint64_t> values, const RuleExit* exit) {
    const auto& bursts = bursts_[hit.rule];
    if (!bursts.looks || !bursts.parameters.enabled) return;
    const auto& rules = tally_.rules();
    const auto& rule = rules.rules()[hit.rule];
    if (rule.by.error) state_.has_error(hit.error == no_slot ? 0 : values[hit.error]);
    if (hit.stack != no_slot) state_.is_at(values[hit.stack]);
    operands_.clear();
    for (const auto& bound : hit.operands)
        operands_.push_back(bound.source.kind == RuleSource::Kind::slot
                                ? bound.source.of(values[bound.slot])
                                : bound.source.constant);
    auto truth = hit.truth;
    if (truth == Truth::depends) {
        if (rules.holds(rule, RuleHitFacts(block, hit, {}, exit)) == Truth::no) return;
        truth = rules.holds(rule, RuleHitFacts(block, hit, operands_, exit));
    }
    if (is_window_) ++counts_.rules[hit.rule].read;
    if (truth == Truth::no) return;
    if (rules.awaits_returns(hit.rule) && is_call(block.exit) && exit && exit->kind) {
        awaited_.await({&block, &hit, *exit, operands_, key_of(block, hit, exit)});
        return;
    }
    if (rule.streams) {
        happened(hit, {}, {});
        const auto address = RuleHitFacts(block, hit, operands_, exit).value_of(address_of_rule);
        if (truth == Truth::yes && address)
            tally_.add_reference(counts_, references_[hit.rule], block, hit, *address);
        return;
    }
    std::optional<std::uint64_t> value;
    if (rule.value) value = RuleHitFacts(block, hit, operands_, exit).value_of(*rule.value);
    const bool is_known = truth == Truth::yes && (!rule.value || value);
    happened(hit, is_known ? key_of(block, hit, exit) : std::nullopt, value);
}

// An event; without a key it is one of which not enough is known.
void RuleReader::happened(const RuleHit& hit, const std::optional<RuleKey>& key,
                          std::optional<std::uint64_t> value) {
    auto& bursts = bursts_[hit.rule];
    const bool in_burst = bursts.parameters.sparsity != 0;
    auto& of_rule = counts_.rules[hit.rule];
    auto& total = in_burst ? bursts.counted.total : of_rule.total;
    auto& unknown = in_burst ? bursts.counted.unknown : of_rule.unknown;
    ++total;
    if (is_window_) ++of_rule.in_windows;
    if (!key) {
        ++unknown;
        return;
    }
    const auto entry = tally_.entry_of(*key);
    if (value) tally_.add_value(entry, *value, sample_, trace_);
    if (!in_burst) {
        ++counts_.counts[entry];
        return;
    }
    auto& entries = bursts.counted.entries;
    const auto same = std::find_if(entries.begin(), entries.end(),
                                   [&](const auto& counted) { return counted.first == entry; });
    if (same == entries.end())
        entries.emplace_back(entry, 1);
    else
        ++same->second;
}

std::optional<RuleKey> RuleReader::key_of(const trace::Block& block, const RuleHit& hit,
                                          const RuleExit* exit) {
    auto key = tally_.key_of(block, hit, exit);
    const auto& by = tally_.rules().rules()[hit.rule].by;
    if (key && by.any_state()) key->state = state_.current().only(by);
    return key;
}

void RuleReader::returned_to(const Location& place, std::optional<std::uint64_t> value) {
    const auto& rules = tally_.rules();
    for (const auto& event : awaited_.returned_to(place, give_up())) {
        const auto& rule = rules.rules()[event.hit->rule];
        const RuleHitFacts facts(*event.block, *event.hit, event.values, &event.exit, value);
        const auto truth = rules.holds(rule, facts);
        if (truth == Truth::no) continue;
        const auto seen = rule.value ? facts.value_of(*rule.value) : std::nullopt;
        const bool is_known = truth == Truth::yes && (!rule.value || seen);
        happened(*event.hit, is_known ? event.key : std::nullopt, seen);
    }
}

// Of that length on average: a program that alternates would otherwise show one side only.
std::uint64_t RuleReader::draw_pause(std::uint32_t sparsity) {
    return 1 + tally_.random().below(2 * std::uint64_t{sparsity} - 1);
}

// A call or a taken backward branch, which the counters count.
void RuleReader::pass_event() {
    for (std::size_t n = 0; n < bursts_.size(); ++n) {
        auto& bursts = bursts_[n];
        if (bursts.left == 0) continue;
        if (!is_window_) {  // which say themselves what they are a part of
            auto& of_rule = counts_.rules[n];
            ++of_rule.passed;
            if (bursts.looks) ++of_rule.looked_at;
        }
        if (--bursts.left != 0) continue;
        if (bursts.looks) end_burst(n);
        references_[n] = {};
        bursts.looks = !bursts.looks;
        bursts.left =
            bursts.looks ? bursts.parameters.burst : draw_pause(bursts.parameters.sparsity);
    }
}

// A burst is a sample of its rule. One in which nothing fits tells nothing of shares.
void RuleReader::end_burst(std::size_t rule) {
    auto& counted = bursts_[rule].counted;
    if (counted.total == 0) return;
    auto& bursts = counts_.rules[rule].bursts;
    bursts.push_back(std::exchange(counted, {}));
    if (bursts.size() >= tuning::most_bursts_kept && counts_once_)
        tally_.fold_bursts(counts_, rule, 1);
}

}  // namespace shadowprof::profile
