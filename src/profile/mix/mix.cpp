#include "profile/mix/mix.h"

#include <algorithm>
#include <string>

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

model::ShownTable table_of(const model::Section& section) {
    const auto& list = static_cast<const MixSection&>(section);
    model::ShownTable table;
    table.title = "Instruction mix";
    table.explanation = "instructions executed, by extension and by what they do";
    table.totals = list.totals;
    table.columns = {"share", "instructions", "extension", "what they do"};
    for (const auto& e : list.entries)
        table.rows.push_back({model::ShownCell::of_share(e.statistics, list.totals),
                              model::ShownCell::of_count(e.statistics.count),
                              model::ShownCell::of_text(e.extension),
                              model::ShownCell::of_text(e.category)});
    return table;
}

}  // namespace

const ProfileType mix_type{
    .name = "mix",
    .collected = ProfileType::Collected::if_asked_for,
    .section = section_type<MixSection>(),
    .make_transition_profile = [](const ProfilerInputs&) -> std::unique_ptr<TransitionProfile> {
        return std::make_unique<MixProfile>();
    },
    .table = table_of,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::MixList>;
template class shadowprof::model::SectionOf<shadowprof::profile::MixList>;
