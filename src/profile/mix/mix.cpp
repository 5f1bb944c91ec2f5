#include "profile/mix/mix.h"

#include <algorithm>
#include <string>

#include "model/number_text.h"
#include "model/shown_chapter.h"

namespace shadowprof::profile {

const MixProfile::Mix& MixProfile::mix_of(const trace::Block& block) {
    const auto [known, is_new] = by_block_.try_emplace(block.id);
    auto& mix = known->second;
    if (!is_new) return mix;
    for (const auto& instruction : block.instructions) {
        const auto kind = kind_of(instruction);
        const auto same = std::find_if(mix.begin(), mix.end(),
                                       [&](const auto& counted) { return counted.first == kind; });
        if (same == mix.end())
            mix.emplace_back(kind, 1);
        else
            ++same->second;
    }
    return mix;
}

void MixProfile::add(const trace::Block& from, Address /*next*/, const Location& /*place*/,
                     std::uint64_t count) {
    for (const auto& [kind, instructions] : mix_of(from)) kinds_.add(kind, count * instructions);
}

void MixProfile::yield(Hotlists& into, Seen seen) {
    MixHotlist list;
    list.totals = kinds_.totals(seen);
    for (const auto& [kind, statistics, pending] : kinds_.entries())
        list.entries.push_back(
            {std::string(kind.extension), std::string(kind.category), statistics});
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

namespace {

model::ShownChapter mix_chapter(const MixSection& list, const model::ChapterInputs& in) {
    using Column = model::ShownColumn;
    using Entry = MixSection::Entry;
    model::TableOf<Entry> table("mix", list, in);
    table.share(&Entry::statistics, list.totals)
        .count("instructions", 9)
        .column(Column("extension", "extension").wide(1),
                [](const Entry& e) { return e.extension; })
        .column(Column("category", "what they do").wide(1),
                [](const Entry& e) { return e.category; });
    return {.key = "mix",
            .name = "Instruction mix",
            .title = "Instruction mix",
            .explanation = "instructions executed, by extension and by what they do: " +
                           model::count_text(list.totals.total),
            .totals = list.totals,
            .dropped = list.dropped,
            .tables = {table.take()}};
}

}  // namespace

const ProfileType mix_type{
    .name = "mix",
    .collected = ProfileType::Collected::if_asked_for,
    .section = section_type<MixSection>(),
    .make_transition_profile = [](const ProfilerInputs&) -> std::unique_ptr<TransitionProfile> {
        return std::make_unique<MixProfile>();
    },
    .chapter = model::chapter_of<MixSection, mix_chapter>,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::MixList>;
template class shadowprof::model::SectionOf<shadowprof::profile::MixList>;
