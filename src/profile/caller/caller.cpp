#include <map>

#include "model/shown_chapter.h"
#include "profile/caller/caller_section.h"
#include "profile/common/profile_type.h"
#include "profile/method/method_section.h"

namespace shadowprof::profile {

namespace {

model::ShownChapter caller_chapter(const CallerSection& list, const model::ChapterInputs& in) {
    using enum model::ShownColumn::Kind;
    using Column = model::ShownColumn;
    using Entry = CallerSection::Entry;
    std::vector<const Entry*> functions;
    for (const auto& e : list.entries)
        if (!e.caller) functions.push_back(&e);
    if (functions.empty()) return {};
    std::map<model::LocationIndex, model::Estimate> self;
    if (const auto* methods = in.profile.find<MethodSection>())
        for (const auto& e : methods->entries)
            self[e.function] = estimate_share(e.instructions, methods->instructions);
    model::TableOf<Entry> table("inclusive", std::move(functions), in,
                                [](const Entry& e) { return e.inclusive.count; });
    table.share(&Entry::inclusive, list.totals)
        .count("instructions", 4)
        .column(Column("self", "itself", ratio).of(8),
                [&](const Entry& e) {
                    const auto own = self.find(e.function);
                    return own == self.end() ? model::ShownCell()
                                             : model::ShownCell(own->second.share);
                })
        .column(Column("calls", "calls", count).of(6),
                [&](const Entry& e) {
                    // Of what was on the stack when samples began no calls were seen.
                    const bool seen = e.calls != 0 || list.totals.exhaustive;
                    return seen ? model::ShownCell(e.calls) : model::ShownCell();
                })
        .column(Column("at", "function", function).wide(3).bold(),
                [](const Entry& e) { return model::ShownPlace{e.function}; })
        .column(Column("source", "where", source).of(7).wide(2).dim(),
                [](const Entry& e) { return model::ShownPlace{e.function}; });
    auto shown = table.take();
    shown.rest = 0;  // what others do is in these as well
    return {.key = "inclusive",
            .name = "Inclusive",
            .title = "Hot functions with what they call",
            .explanation = "from call to return, by instructions",
            .about = "Functions with all that they call",
            .totals = list.totals,
            .dropped = list.dropped,
            .tables = {std::move(shown)}};
}

}  // namespace

// The registry's. Found by the profiler of contexts.
extern const ProfileType caller_type;
const ProfileType caller_type{
    .name = "caller",
    .collected = ProfileType::Collected::always,
    .section = section_type<CallerSection>(),
    .chapter = model::chapter_of<CallerSection, caller_chapter>,
    .rank = 2,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::CallerList>;
template class shadowprof::model::SectionOf<shadowprof::profile::CallerList>;
