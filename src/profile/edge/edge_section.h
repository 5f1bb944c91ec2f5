// Edges in hotlists and profiles.
#pragma once

#include "model/hotlist.h"
#include "profile/common/edge_kind.h"

namespace shadowprof::profile {

template <class Place>
struct EdgeEntry {
    Place from{};  // the branch instruction
    Place to{};
    EdgeKind kind{};
    model::Statistics statistics;
    bool operator==(const EdgeEntry&) const = default;

    static constexpr auto fields() {
        return std::tuple(model::place_field("from", &EdgeEntry::from),
                          model::place_field("to", &EdgeEntry::to),
                          model::named_field("kind", &EdgeEntry::kind),
                          model::count_field(&EdgeEntry::statistics));
    }
};

template <class Place>
struct EdgeList : model::Hotlist<EdgeEntry<Place>> {
    static constexpr std::string_view section_key = "edges";
    static constexpr auto fields() { return EdgeList::fields_with(); }
    bool operator==(const EdgeList&) const = default;
};

using EdgeHotlist = model::Found<EdgeList>;
using EdgeSection = model::SectionOf<EdgeList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::EdgeList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::EdgeList>;
