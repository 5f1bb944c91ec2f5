// Functions in hotlists and profiles: their calls and loops, and the instructions executed in them.
#pragma once

#include <cstdint>

#include "model/hotlist.h"

namespace shadowprof::profile {

template <class Place>
struct MethodList;

template <class Place>
struct MethodEntry {
    Place function{};              // its entry
    model::Statistics statistics;  // of calls + back edges
    std::uint64_t calls = 0;       // entered by a call instruction
    // Entered by a jump from another function: PLT stubs, tail calls.
    std::uint64_t tail_calls = 0;
    std::uint64_t back_edges = 0;
    model::Statistics instructions;  // executed in it
    bool operator==(const MethodEntry&) const = default;

    static constexpr auto fields() {
        return std::tuple(model::place_field("function", &MethodEntry::function),
                          model::sum_field("calls", &MethodEntry::calls),
                          model::sum_field("tail_calls", &MethodEntry::tail_calls),
                          model::sum_field("back_edges", &MethodEntry::back_edges),
                          model::count_field(&MethodEntry::statistics),
                          model::more_count_field("instructions", &MethodEntry::instructions,
                                                  &MethodList<Place>::instructions));
    }
};

template <class Place>
struct MethodList : model::Hotlist<MethodEntry<Place>> {
    model::Totals instructions;

    static constexpr std::string_view section_key = "methods";
    static constexpr auto fields() {
        return MethodList::fields_with(
            model::MoreTotalsField<MethodList>("instructions", &MethodList::instructions));
    }
    bool operator==(const MethodList&) const = default;
};

using MethodHotlist = model::Found<MethodList>;
using MethodSection = model::SectionOf<MethodList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::MethodList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::MethodList>;
