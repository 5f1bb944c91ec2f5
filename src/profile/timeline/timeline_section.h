// What the program did when, in hotlists and profiles: the run is cut into columns of equal time.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "model/hotlist.h"
#include "profile/common/clock_look.h"

namespace shadowprof::profile {

template <class Owner, class Place>
using OptionalPlaceField =
    model::PlaceField<Owner, std::optional<Place>, model::IfSet<model::PlaceCodec>>;

// The time of threads, in nanoseconds, in one column.
template <class Place>
struct TimelineEntry {
    std::uint64_t column = 0;
    std::string thread;  // by name
    ThreadState state{};
    std::string call;
    std::optional<Place> function;  // the innermost
    model::Statistics statistics;
    bool operator==(const TimelineEntry&) const = default;

    static constexpr auto fields() {
        return std::tuple(
            model::identity_field("column", &TimelineEntry::column),
            model::identity_field("thread", &TimelineEntry::thread),
            model::named_field("state", &TimelineEntry::state),
            model::identity_field("call", &TimelineEntry::call),
            OptionalPlaceField<TimelineEntry, Place>{
                model::field<model::IfSet<model::PlaceCodec>>("function", &TimelineEntry::function)
                    .unless_empty(),
                false},
            model::count_field(&TimelineEntry::statistics));
    }
};

// What is added up has the same (rescale).
template <class Owner>
struct ColumnWidthField : model::ValueField<Owner, std::uint64_t, model::Json<std::uint64_t>> {
    using Base = model::ValueField<Owner, std::uint64_t, model::Json<std::uint64_t>>;
    using Base::Base;
    template <class Section>
    void merge(Section&, const Section&) const {}
};

// Totals: nanoseconds of all threads, on a processor or waiting.
template <class Place>
struct TimelineList : model::Hotlist<TimelineEntry<Place>> {
    std::uint64_t column_width = 0;  // milliseconds

    static constexpr std::string_view section_key = "timeline";
    static constexpr auto fields() {
        return TimelineList::fields_with(ColumnWidthField<TimelineList>{
            model::field("column_width", &TimelineList::column_width)
                .about("milliseconds from the beginning of one column to the next")});
    }
    // Columns may become wider.
    std::uint64_t scale() const { return column_width; }
    void rescale(std::uint64_t to) {
        for (auto& e : this->entries)
            e.column = static_cast<std::uint64_t>(static_cast<double>(e.column) *
                                                  static_cast<double>(column_width) /
                                                  static_cast<double>(to));
        column_width = to;
    }
    bool operator==(const TimelineList&) const = default;
};

using TimelineHotlist = model::Found<TimelineList>;
using TimelineSection = model::SectionOf<TimelineList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::TimelineList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::TimelineList>;
