// Profile type rule: what the user's rules say is to be counted (rule.h). Rules that only count
// follow from how often control went from which block to which. The others read what threads did in
// order: with the values that engines capture for them, or without any.
//
// A rule's events are the executions that fit its pattern. Unknown are those of which not enough
// was seen: where a branch led, what a call returned.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/number_text.h"
#include "model/shown_chapter.h"
#include "model/utf8.h"
#include "profile/common/profile_type.h"
#include "profile/request/reads_requests.h"
#include "profile/rule/rule_reader.h"
#include "profile/rule/rule_section.h"
#include "profile/rule/rule_tally.h"
#include "profile/stream/stream_words.h"
#include "profile/value/value_words.h"

namespace shadowprof::profile {

namespace {

class RuleProfiler : public Profiler, public ReadsRequests {
  public:
    RuleProfiler(const trace::BlockTable& blocks, const RuleSet& rules,
                 const trace::CaptureChoice& choice, std::uint64_t seed,
                 RuleTally::NameOfCall name_of_call)
        : rules_(rules), choice_(choice), name_of_call_(name_of_call), tally_(blocks, rules, seed) {
        for (std::size_t n = 0; n < rules.rules().size(); ++n)
            reads_segments_ = reads_segments_ || (rules.reads_order(n) && !rules.reads_values(n));
    }

    std::string_view name() const override { return "rule"; }
    trace::CapturePlan captures() const override {
        return rules_.any_reads_values() ? trace::CapturePlan::of_chosen(choice_)
                                         : trace::CapturePlan();
    }
    bool reads_segments() const override { return reads_segments_; }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override {
        return std::make_unique<RuleReader>(tally_, start);
    }
    void count(trace::SampleId id, const Counts& counts) override {
        auto& sample = tally_.open(id);
        const auto& blocks = tally_.blocks();
        for (std::size_t n = 0; n < sample.rules.size(); ++n)
            if (!rules_.reads_order(n)) sample.rules[n].is_covered = true;
        for (const auto& pass : counts.passes) {
            const auto& to = blocks.at(pass.to);
            tally_.count(sample, blocks.at(pass.from), to.start, to.place, pass.count);
        }
        for (const auto& exit : counts.exits)
            tally_.count(sample, blocks.at(exit.from), exit.next, exit.place, exit.count);
    }
    void end_sample(trace::SampleId sample, std::uint64_t weight) override {
        tally_.end_sample(sample, weight);
        tally_.states().forget_request(sample);
    }
    void see_request(trace::SampleId sample, const trace::RequestSight& sight) override {
        tally_.states().see_request(sample, sight);
    }
    void yield(Hotlists& into, Seen seen) override { tally_.yield(into, seen, name_of_call_); }

  private:
    const RuleSet& rules_;
    const trace::CaptureChoice& choice_;
    RuleTally::NameOfCall name_of_call_;
    bool reads_segments_ = false;
    RuleTally tally_;
};

std::string stream_text(const model::Profile& profile, const RuleSection::Entry& e) {
    const auto& stream = *e.stream;
    const auto each = [&](double n) {
        return static_cast<std::uint64_t>(stream.each(1) * n + 0.5);
    };
    auto text =
        fmt::format("{}, {}, {} in step",
                    model::counted("reference", each(static_cast<double>(e.statistics.count))),
                    model::counted("line", each(static_cast<double>(stream.lines))),
                    model::share_text(model::fraction(static_cast<double>(stream.regular),
                                                      static_cast<double>(e.statistics.count))));
    if (const auto data = stream_data_text(profile, stream); !data.empty()) text += ", " + data;
    return text;
}

std::string values_text(const RuleSection::Entry& e) {
    constexpr std::size_t most = 3;
    constexpr double worth_a_word = 0.01;
    ValueSection::Entry as_value;  // of 64 bits in a general register
    std::string text;
    for (std::size_t n = 0; n < std::min(most, e.values.top.size()); ++n) {
        const auto& [value, statistics] = e.values.top[n];
        const auto share = model::estimate_value_share(statistics, e.values.executions,
                                                       e.values.probability_inverse)
                               .share;
        if (share < worth_a_word) break;
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", value_text(value, as_value),
                            model::share_text(share));
    }
    const auto& stride = e.values.stride;
    if (stride && stride->step != 0 && stride->share >= worth_a_word)
        text += fmt::format("{}step {:+} {}", text.empty() ? "" : ", ", stride->step,
                            model::share_text(stride->share));
    if (text.empty() && e.values.executions.total != 0) text = "many values";
    return text;
}

model::ShownChapter rule_chapter(const RuleSection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    using Entry = RuleSection::Entry;
    using model::ShownCell, model::ShownPlace;
    const auto& entries = list.entries;
    const auto has = [&](auto part) { return std::any_of(entries.begin(), entries.end(), part); };
    const auto rule_of = [&](const Entry& e) -> const NamedTotals& {
        return *list.find_part(e.rule);
    };

    model::TableOf<Entry> table("rules", parts_in_turn(list, in.most_rows), in,
                                [](const Entry& e) { return e.statistics.count; });
    table.column(Column("rule", "rule"), [](const Entry& e) { return model::printable(e.rule); })
        .column(Column("share", "share", share).with_interval(3),
                [&](const Entry& e) {
                    return model::estimate_share(e.statistics, list.totals_of(e.rule));
                })
        .column(Column("count", "count", count).of(5),
                [&](const Entry& e) { return rule_of(e).estimated(e.statistics.count); })
        .column(Column("at", "at", place).wide(2).bold(),
                [](const Entry& e) { return ShownPlace{e.at}; });
    if (has([](const Entry& e) { return e.target.has_value(); }))
        table.column(Column("target", "to", function).wide(1), [](const Entry& e) {
            return e.target ? ShownCell(ShownPlace{*e.target}) : ShownCell();
        });
    if (has([](const Entry& e) { return e.caller || e.return_address; }))
        table.column(Column("caller", "called from", place).wide(1), [](const Entry& e) {
            const auto& from = e.caller ? e.caller : e.return_address;
            return from ? ShownCell(ShownPlace{*from}) : ShownCell();
        });
    if (has([](const Entry& e) { return !e.state.empty(); }))
        table.column(Column("keys", "by"), [](const Entry& e) { return state_text(e.state); });
    if (has([](const Entry& e) { return e.values.executions.total != 0; }))
        table.column(Column("values", "values").wide(2), values_text);
    if (has([](const Entry& e) { return e.stream.has_value(); }))
        table
            .column(
                Column("times", "times", count),
                [](const Entry& e) { return e.stream ? ShownCell(e.stream->times) : ShownCell(); })
            .column(Column("stream", "stream").wide(2), [&](const Entry& e) {
                return e.stream ? stream_text(in.profile, e) : std::string();
            });

    model::ShownChapter chapter{.key = "rules",
                                .name = "Rules",
                                .title = "Rules",
                                .explanation = model::counted("rule", list.parts.size()) +
                                               "; shares are of each rule's events",
                                .about = "What was asked for by rules",
                                .totals = list.totals,
                                .dropped = list.dropped,
                                .needs_samples = false};
    for (const auto& rule : list.parts)
        for (auto& line : rule.lines()) chapter.notes.push_back(std::move(line));
    chapter.tables.push_back(table.take());
    return chapter;
}

}  // namespace

extern const ProfileType rule_type;
const ProfileType rule_type{
    .name = "rule",
    .collected = ProfileType::Collected::if_asked_for,
    .section = section_type<RuleSection>(),
    .make_profiler = [](const ProfilerInputs& in) -> std::unique_ptr<Profiler> {
        if (!in.options.rules) return nullptr;
        return std::make_unique<RuleProfiler>(in.blocks, *in.options.rules, *in.options.chosen,
                                              in.options.seed, in.options.name_of_system_call);
    },
    .chapter = model::chapter_of<RuleSection, rule_chapter>,
    .rank = 0,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::RuleList>;
template class shadowprof::model::SectionOf<shadowprof::profile::RuleList>;
