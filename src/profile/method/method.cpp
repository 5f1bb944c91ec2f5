#include "profile/method/method.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "model/number_text.h"
#include "model/shown_chapter.h"
#include "profile/caller/caller_section.h"
#include "profile/path/path_rule.h"

namespace shadowprof::profile {

Location MethodProfile::function_of(const Location& place) {
    const auto [found, is_new] = known_places_.try_emplace(place);
    if (is_new) found->second = functions_.function_of(place);
    return found->second;
}

const MethodProfile::FunctionsOfBlock& MethodProfile::functions_of(const trace::Block& block) {
    const auto [found, is_new] = known_blocks_.try_emplace(block.id);
    if (is_new) {
        found->second.of_start = function_of(block.place);
        found->second.of_last = functions_.function_of(block.place_of_last());
    }
    return found->second;
}

void MethodProfile::add(const trace::Block& from, Address next, const Location& place,
                        std::uint64_t count) {
    instructions_.add(functions_of(from).of_start, count * from.instructions.size());
    if (is_call(from.exit)) {
        add_call(from, next, place, count);
    } else if (const auto kind = edge_kind(from, next);
               kind == EdgeKind::taken || kind == EdgeKind::indirect) {
        add_jump(from, next, place, count);
    }
}

void MethodProfile::end_sample() {
    events_.end_sample();
    instructions_.end_sample();
}

void MethodProfile::add_call(const trace::Block& from, Address next, const Location& place,
                             std::uint64_t count) {
    if (!edge_kind(from, next)) return events_.add_unknown(count);
    const auto callee = function_of(place);
    events_.add(callee, count);
    entered_[callee].calls += count;
}

void MethodProfile::add_jump(const trace::Block& from, Address next, const Location& place,
                             std::uint64_t count) {
    const auto own = functions_of(from).of_last;
    const auto other = function_of(place);
    const bool backward = is_taken_backward(from, next, place);
    if (own == other) {
        if (!backward) return;
        events_.add(own, count);
        entered_[own].back_edges += count;
        return;
    }
    // A branch that is said to be a function of its own, and not its block's first instruction, is
    // one whose function is not known.
    const auto branch = from.place_of_last();
    const bool own_is_known = own != branch || branch == from.place;
    if (own_is_known && place == other) {
        entered_[other].tail_calls += count;
    } else if (backward) {
        events_.add_unknown(count);
    }
}

void MethodProfile::yield(Hotlists& into, Seen seen) {
    std::map<Location, MethodHotlist::Entry> by_function;
    for (const auto& [function, statistics, pending] : events_.entries())
        by_function[function].statistics = statistics;
    for (const auto& [function, statistics, pending] : instructions_.entries())
        by_function[function].instructions = statistics;
    for (const auto& [function, entered] : entered_) {
        auto& entry = by_function[function];
        entry.calls = entered.calls;
        entry.tail_calls = entered.tail_calls;
        entry.back_edges = entered.back_edges;
    }
    MethodHotlist list;
    list.totals = events_.totals(seen);
    list.instructions = instructions_.totals(seen);
    for (auto& [function, entry] : by_function) {
        entry.function = function;
        list.entries.push_back(entry);
    }
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

namespace {

model::ShownChapter method_chapter(const MethodSection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    using Entry = MethodSection::Entry;
    std::vector<const Entry*> order;
    for (const auto& e : list.entries)
        if (e.instructions.count + e.statistics.count > 0) order.push_back(&e);
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
        return a->instructions.count > b->instructions.count;
    });
    std::map<model::LocationIndex, model::Estimate> inclusive;
    if (const auto* callers = in.profile.find<CallerSection>())
        for (const auto& e : callers->entries)
            if (!e.caller) inclusive[e.function] = estimate_share(e.inclusive, callers->totals);
    model::TableOf<Entry> table("functions", std::move(order), in,
                                [](const Entry& e) { return e.instructions.count; });
    table.share(&Entry::instructions, list.instructions).count("instructions", 4);
    if (!inclusive.empty())
        table.column(Column("inclusive", "with calls", ratio).of(8), [&](const Entry& e) {
            const auto all = inclusive.find(e.function);
            return all == inclusive.end() ? model::ShownCell()
                                          : model::ShownCell(all->second.share);
        });
    // Whoever asks how often a function is called does not care by which instruction: those of
    // libraries are entered by their stubs' jumps.
    table
        .column(Column("calls", "calls", count).of(6),
                [](const Entry& e) { return e.calls + e.tail_calls; })
        .column(Column("tail_calls", "tail calls", count).of(1),
                [](const Entry& e) {
                    return e.tail_calls ? model::ShownCell(e.tail_calls) : model::ShownCell();
                })
        .column(Column("loops", "loops", count).of(5), [](const Entry& e) { return e.back_edges; })
        .column(Column("at", "function", function).wide(3).bold(),
                [](const Entry& e) { return model::ShownPlace{e.function}; })
        .column(Column("source", "where", source).of(7).wide(2).dim(),
                [](const Entry& e) { return model::ShownPlace{e.function}; });
    constexpr double most_error = 0.5;  // a total whose interval is wider than itself is none
    const bool knows_total = relative_error_of(list.instructions) < most_error;
    return {.key = "functions",
            .name = "Functions",
            .title = "Hot functions",
            .explanation =
                "by instructions" +
                (knows_total ? ": " + model::count_text(list.instructions.total) : std::string()),
            .about = "Functions, and how often they are called and loop",
            .totals = list.instructions,
            .dropped = list.dropped,
            .tables = {table.take()}};
}

std::string diffed_name(const MethodSection::Entry& e, const SourceNames& names) {
    return names.function[e.function];
}

}  // namespace

const ProfileType method_type{
    .name = "method",
    .section = section_type<MethodSection>(),
    .make_transition_profile = [](const ProfilerInputs& in) -> std::unique_ptr<TransitionProfile> {
        return std::make_unique<MethodProfile>(in.functions);
    },
    .chapter = model::chapter_of<MethodSection, method_chapter>,
    .rank = 1,
    .diffed = diffed<MethodSection, diffed_name, &MethodSection::Entry::instructions,
                     &MethodSection::instructions>("functions", "instructions", 0),
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::MethodList>;
template class shadowprof::model::SectionOf<shadowprof::profile::MethodList>;
