// Calls in hotlists and profiles.
#pragma once

#include "model/hotlist.h"

namespace shadowprof::profile {

template <class Place>
struct CallEntry {
    Place from{};  // the call instruction
    Place to{};
    model::Statistics statistics;
    bool operator==(const CallEntry&) const = default;

    static constexpr auto fields() {
        return std::tuple(model::place_field("from", &CallEntry::from),
                          model::place_field("to", &CallEntry::to),
                          model::count_field(&CallEntry::statistics));
    }
};

template <class Place>
struct CallList : model::Hotlist<CallEntry<Place>> {
    static constexpr std::string_view section_key = "calls";
    static constexpr auto fields() { return CallList::fields_with(); }
    bool operator==(const CallList&) const = default;
};

using CallHotlist = model::Found<CallList>;
using CallSection = model::SectionOf<CallList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::CallList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::CallList>;
