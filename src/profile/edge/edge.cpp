#include "profile/edge/edge.h"

#include <utility>

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

const ProfileType edge_type{
    .name = "edge",
    .section = section_type<EdgeSection>(),
    .make_transition_profile = [](const ProfilerInputs&) -> std::unique_ptr<TransitionProfile> {
        return std::make_unique<EdgeProfile>();
    },
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::EdgeList>;
template class shadowprof::model::SectionOf<shadowprof::profile::EdgeList>;
