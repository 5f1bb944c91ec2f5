// What functions cost with all that they call, in hotlists and profiles: in all, and on behalf of
// each caller. The profiler of contexts finds both: what a function costs in all does not follow
// from a list of contexts that leaves out rare ones, nor does how much samples differ.
#pragma once

#include <cstdint>
#include <optional>

#include "profile/context/context_section.h"

namespace shadowprof::profile {

template <class Place>
struct CallerEntry {
    Place function{};             // its entry
    std::optional<Place> caller;  // the entry of the function that called it; none: in all
    std::uint64_t calls = 0;
    // From call to return; what a recursive function does is counted once.
    model::Statistics inclusive;
    bool operator==(const CallerEntry&) const = default;

    static constexpr auto fields() {
        using Codec = model::IfSet<model::PlaceCodec>;
        return std::tuple(
            model::place_field("function", &CallerEntry::function),
            model::PlaceField<CallerEntry, std::optional<Place>, Codec>(
                model::field<Codec>("caller", &CallerEntry::caller).unless_empty(), false),
            model::sum_field("calls", &CallerEntry::calls),
            InclusiveField<CallerEntry, model::Hotlist<CallerEntry>>(
                "inclusive", &CallerEntry::inclusive, &model::Hotlist<CallerEntry>::totals));
    }
    std::uint64_t weight() const { return inclusive.count; }
};

// Of all instructions.
template <class Place>
struct CallerList : model::Hotlist<CallerEntry<Place>> {
    static constexpr std::string_view section_key = "callers";
    static constexpr auto fields() { return CallerList::fields_with(InclusiveIsInTotal{}); }
    bool operator==(const CallerList&) const = default;
};

using CallerHotlist = model::Found<CallerList>;
using CallerSection = model::SectionOf<CallerList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::CallerList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::CallerList>;
