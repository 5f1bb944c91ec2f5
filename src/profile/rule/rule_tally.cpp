#include "profile/rule/rule_tally.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "profile/common/tally.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

std::optional<RuleKey> RuleTally::key_of(const trace::Block& block, const RuleHit& hit,
                                         const RuleExit* exit) const {
    const auto& rule = rules_.rules()[hit.rule];
    const auto place = block.place_of(block.instructions[hit.instruction]);
    RuleKey key{.rule = hit.rule, .at = place};
    const bool is_led = exit && exit->kind;
    if (rule.by.target) {
        if (!is_led) return {};
        key.target = exit->to;
    }
    switch (rule.at) {
        case Rule::At::instruction:
            break;
        case Rule::At::function:
            key.at = rules_.functions().function_of(place);
            break;
        case Rule::At::target:
        case Rule::At::target_function:
            if (!is_led) return {};
            key.at =
                rule.at == Rule::At::target ? exit->to : rules_.functions().function_of(exit->to);
            break;
    }
    return key;
}

void RuleTally::count(Sample& sample, const trace::Block& from, Address next, const Location& place,
                      std::uint64_t times) {
    const auto& plan = plan_of(from.id);
    std::optional<RuleExit> exit;
    for (const auto& hit : plan.hits) {
        if (hit.is_last && !exit) exit = exit_of(from, next, place);
        const auto* const of_hit = hit.is_last ? &*exit : nullptr;
        auto truth = hit.truth;
        if (truth == Truth::depends) {
            const auto& instruction = from.instructions[hit.instruction];
            RuleFacts facts(instruction, from.place_of(instruction));
            facts.exit = of_hit;
            truth = rules_.holds(rules_.rules()[hit.rule], facts);
        }
        if (truth == Truth::no) continue;
        auto& of_rule = sample.rules[hit.rule];
        if (rules_.reads_values(hit.rule)) of_rule.all += times;
        if (rules_.reads_order(hit.rule)) continue;
        of_rule.total += times;
        const auto key = truth == Truth::yes ? key_of(from, hit, of_hit) : std::nullopt;
        if (key)
            sample.counts[entry_of(*key)] += times;
        else
            of_rule.unknown += times;
    }
}

std::uint32_t RuleTally::entry_of(const RuleKey& key) {
    const auto [found, is_new] =
        known_.try_emplace(key, static_cast<std::uint32_t>(entries_.size()));
    if (is_new) entries_.push_back({key, {}});
    return found->second;
}

void RuleTally::add_value(std::uint32_t entry, std::uint64_t value, trace::SampleId sample,
                          trace::TraceId trace) {
    auto*& stream = entries_[entry].values;
    constexpr unsigned all_bits = 64;
    if (!stream) stream = &streams_.emplace_back(CountingSample::default_slots, all_bits);
    if (!stream->is_at(sample)) stream->turn_to(sample, samples_);
    stream->add(value, trace, random_);
}

void RuleTally::add_reference(Sample& sample, ReferenceGraph::Cursor& at, const trace::Block& block,
                              const RuleHit& hit, std::uint64_t address) {
    auto& of = sample.streams[hit.rule];
    ++of.count;
    if (hit.is_by_rsp) return;
    auto& streams = streams_of_rules_.at(hit.rule);
    streams.learn(block);
    const auto place = block.place_of(block.instructions[hit.instruction]);
    streams.add(of.graph, at, {address, streams.number_of(place, hit.bytes)});
}

void RuleTally::end_sample(trace::SampleId id, std::uint64_t weight) {
    samples_.close(id, [&](Sample& sample) { fold(sample, weight); });
    if (streams_.size() >= next_look_)
        next_look_ = shorten_rarest(streams_, samples_, tuning::most_values_listed, random_);
}

void RuleTally::fold_bursts(Sample& sample, std::size_t rule, std::uint64_t weight) {
    auto& bursts = sample.rules[rule].bursts;
    auto& totals = of_rules_[rule].totals;
    for (const auto& burst : bursts) {
        totals.add_sample(burst.total * weight);
        totals.unknown += burst.unknown * weight;
        for (const auto& [entry, count] : burst.entries)
            entries_[entry].statistics.add_sample(count * weight, burst.total * weight);
    }
    bursts.clear();
}

void RuleTally::fold(Sample& sample, std::uint64_t weight) {
    sample.counts.for_each([&](std::uint64_t entry, std::uint64_t count) {
        auto& counted = entries_[entry];
        counted.statistics.add_sample(count * weight,
                                      sample.rules[counted.key.rule].total * weight);
    });
    for (std::size_t n = 0; n < of_rules_.size(); ++n) {
        const auto& rule = sample.rules[n];
        auto& sum = of_rules_[n];
        fold_bursts(sample, n, weight);
        if (rule.is_covered || rule.total != 0) {
            sum.totals.add_sample(rule.total * weight);
            sum.totals.unknown += rule.unknown * weight;
        }
        sum.read += rule.read * weight;
        sum.all += rule.all * weight;
        sum.looked_at += rule.looked_at * weight;
        sum.passed += rule.passed * weight;
        sum.in_windows += rule.in_windows * weight;
        sum.was_disabled = sum.was_disabled || rule.was_disabled;
    }
    for (auto& [rule, of] : sample.streams) {
        if (of.count != 0) streams_of_rules_.at(rule).fold(of.graph, of.count * weight, of.count);
        of.count = 0;
    }
    sample.counts.clear();
    sample.rules.clear();
}

RuleHotlist::Entry RuleTally::found(const Entry& entry, Seen seen, NameOfCall name_of_call) {
    const auto& key = entry.key;
    const auto& rule = rules_.rules()[key.rule];
    RuleHotlist::Entry found;
    found.rule = rule.name;
    found.at = key.at;
    found.target = key.target;
    found.caller = states_.place(key.state.caller);
    found.return_address = states_.place(key.state.return_address);
    found.state = states_.texts(key.state, name_of_call);
    found.statistics = entry.statistics;
    if (entry.values) {
        found.values = counted_values(*entry.values);
        found.values.executions.exhaustive = seen == Seen::everything;
    }
    return found;
}

// Until now all references of the rule were unknown.
void RuleTally::add_streams(std::size_t rule, NamedTotals& part, RuleHotlist& list) {
    if (part.totals.total == 0) return;
    for (auto& stream : streams_of_rules_.at(rule).streams(part.totals)) {
        if (stream.statistics.count > part.totals.unknown) continue;
        part.totals.unknown -= stream.statistics.count;
        auto& entry = list.entries.emplace_back();
        entry.rule = part.name;
        entry.at = stream.references.front().location;
        entry.statistics = stream.statistics;
        entry.stream = std::move(stream);
    }
}

void RuleTally::yield(Hotlists& into, Seen seen, NameOfCall name_of_call) {
    samples_.close_all([this](Sample& sample) { fold(sample, 1); });
    states_.learn(blocks_);
    for (auto& stream : streams_) stream.put_down(samples_);
    RuleHotlist list;
    bool is_exhaustive = true;
    for (std::size_t n = 0; n < of_rules_.size(); ++n) {
        const auto& sum = of_rules_[n];
        const auto& rule = rules_.rules()[n];
        auto& found = list.parts.emplace_back(NamedTotals{rule.name, rule.text, sum.totals});
        if (rule.sparsity != 0)
            found.text += fmt::format(" [sparsity={},burst={}]", rule.sparsity, rule.burst);
        found.totals.exhaustive = seen == Seen::everything && sum.read == sum.all &&
                                  sum.looked_at == sum.passed && !sum.was_disabled;
        found.stands_for = scaled(sum.in_windows, sum.all, sum.read) +
                           scaled(sum.totals.total - sum.in_windows, sum.passed, sum.looked_at);
        if (rule.streams) add_streams(n, found, list);
        is_exhaustive = is_exhaustive && found.totals.exhaustive;
        list.totals.merge(found.totals);
    }
    list.totals.exhaustive = is_exhaustive;
    for (const auto& entry : entries_)
        if (entry.statistics.count != 0) list.entries.push_back(found(entry, seen, name_of_call));
    // Only where every event of the rule was read is nothing of its values estimated.
    for (auto& e : list.entries)
        e.values.executions.exhaustive =
            e.values.executions.exhaustive && list.totals_of(e.rule).exhaustive;
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

}  // namespace shadowprof::profile
