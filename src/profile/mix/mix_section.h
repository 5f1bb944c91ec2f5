// The instruction mix in hotlists and profiles.
#pragma once

#include <string>

#include "model/hotlist.h"

namespace shadowprof::profile {

template <class Place>
struct MixEntry {
    std::string extension;  // of the instruction set: "base", "AVX2"
    std::string category;   // what the instructions do: "load", "integer arithmetic"
    model::Statistics statistics;
    bool operator==(const MixEntry&) const = default;

    static constexpr auto fields() {
        return std::tuple(model::identity_field("extension", &MixEntry::extension),
                          model::identity_field("category", &MixEntry::category),
                          model::count_field(&MixEntry::statistics));
    }
};

// Totals: instructions executed.
template <class Place>
struct MixList : model::Hotlist<MixEntry<Place>> {
    static constexpr std::string_view section_key = "mix";
    static constexpr auto fields() { return MixList::fields_with(); }
    bool operator==(const MixList&) const = default;
};

using MixHotlist = model::Found<MixList>;
using MixSection = model::SectionOf<MixList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::MixList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::MixList>;
