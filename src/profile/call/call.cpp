#include "profile/call/call.h"

#include <utility>

#include "model/number_text.h"
#include "model/shown_chapter.h"

namespace shadowprof::profile {

void CallProfile::add(const trace::Block& from, Address next, const Location& place,
                      std::uint64_t count) {
    if (!is_call(from.exit)) return;
    if (edge_kind(from, next))
        calls_.add({from.place_of_last(), place}, count);
    else
        calls_.add_unknown(count);
}

void CallProfile::yield(Hotlists& into, Seen seen) {
    CallHotlist list;
    list.totals = calls_.totals(seen);
    for (const auto& [call, statistics, pending] : calls_.entries())
        list.entries.push_back({call.from, call.to, statistics});
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

namespace {

model::ShownChapter call_chapter(const CallSection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    using Entry = CallSection::Entry;
    model::TableOf<Entry> table("calls", list, in);
    table.share(&Entry::statistics, list.totals)
        .count("count", 5)
        .column(Column("from", "from", place).wide(1),
                [](const Entry& e) { return model::ShownPlace{e.from}; })
        .column(Column("to", "to", function).wide(1).bold(),
                [](const Entry& e) { return model::ShownPlace{e.to}; });
    return {.key = "calls",
            .name = "Calls",
            .title = "Hot calls",
            .explanation = model::count_text(list.totals.total) + " calls",
            .about = "Who calls whom",
            .totals = list.totals,
            .dropped = list.dropped,
            .tables = {table.take()}};
}

std::string diffed_name(const CallSection::Entry& e, const SourceNames& names) {
    return names.function[e.from] + " → " + names.function[e.to];
}

}  // namespace

const ProfileType call_type{
    .name = "call",
    .section = section_type<CallSection>(),
    .make_transition_profile = [](const ProfilerInputs&) -> std::unique_ptr<TransitionProfile> {
        return std::make_unique<CallProfile>();
    },
    .chapter = model::chapter_of<CallSection, call_chapter>,
    .rank = 4,
    .diffed =
        diffed<CallSection, diffed_name, &CallSection::Entry::statistics, &CallSection::totals>(
            "calls", "calls", 1),
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::CallList>;
template class shadowprof::model::SectionOf<shadowprof::profile::CallList>;
