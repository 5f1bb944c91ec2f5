#include "profile/edge/edge.h"

#include <tuple>

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
    EdgeHotlist list{edges_.totals(seen), {}};
    for (const auto& [edge, statistics, pending] : edges_.entries())
        list.entries.push_back({edge.from, edge.to, edge.kind, statistics});
    sort_hotlist(list.entries, [](const EdgeEntry& e) { return std::tuple{e.from, e.to, e.kind}; });
    into.edges = std::move(list);
}

}  // namespace shadowprof::profile
