#include "profile/edge/edge.h"

#include <utility>

#include "model/number_text.h"
#include "model/shown_chapter.h"

namespace shadowprof::profile {

void EdgeProfile::add(const trace::Block& from, Address next, const Location& place,
                      std::uint64_t count) {
    if (!has_edge(from.exit)) return;
    if (const auto kind = edge_kind(from, next))
        edges_.add({from.place_of_last(), place, *kind}, count);
    else
        edges_.add_unknown(count);
}

void EdgeProfile::yield(Hotlists& into, Seen seen) {
    EdgeHotlist list;
    list.totals = edges_.totals(seen);
    for (const auto& [edge, statistics, pending] : edges_.entries())
        list.entries.push_back({edge.from, edge.to, edge.kind, statistics});
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

namespace {

model::ShownChapter edge_chapter(const EdgeSection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    using Entry = EdgeSection::Entry;
    model::TableOf<Entry> table("edges", list, in);
    table.share(&Entry::statistics, list.totals)
        .count("count", 5)
        .column(Column("kind", "kind", word).of(6),
                [](const Entry& e) { return std::string(model::name_of(e.kind)); })
        .column(Column("from", "from", place).wide(1),
                [](const Entry& e) { return model::ShownPlace{.at = e.from, .to = e.to}; })
        .column(Column("instruction", "instruction", instruction).wide(1).only(Column::On::page),
                [](const Entry& e) { return model::ShownPlace{e.from}; })
        .column(Column("to", "to", place).wide(1),
                [](const Entry& e) { return model::ShownPlace{.at = e.to, .from = e.from}; });
    return {.key = "edges",
            .name = "Edges",
            .title = "Hot edges",
            .explanation = model::count_text(list.totals.total) + " executions of edges",
            .about = "Branches and where they went",
            .totals = list.totals,
            .dropped = list.dropped,
            .tables = {table.take()}};
}

std::string diffed_name(const EdgeSection::Entry& e, const SourceNames& names) {
    return fmt::format("{} → {} ({})", names.place[e.from], names.place[e.to],
                       model::name_of(e.kind));
}

}  // namespace

const ProfileType edge_type{
    .name = "edge",
    .section = section_type<EdgeSection>(),
    .make_transition_profile = [](const ProfilerInputs&) -> std::unique_ptr<TransitionProfile> {
        return std::make_unique<EdgeProfile>();
    },
    .chapter = model::chapter_of<EdgeSection, edge_chapter>,
    .rank = 3,
    .diffed =
        diffed<EdgeSection, diffed_name, &EdgeSection::Entry::statistics, &EdgeSection::totals>(
            "edges", "executions", 2),
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::EdgeList>;
template class shadowprof::model::SectionOf<shadowprof::profile::EdgeList>;
