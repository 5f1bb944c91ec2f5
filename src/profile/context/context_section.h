// Calling contexts in hotlists and profiles: which functions a thread was in, the outermost first.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "profile/common/frames_field.h"

namespace shadowprof::profile {

// What the outermost function of a context was begun by.
enum class ContextRoot : std::uint8_t {
    thread,   // the thread's beginning, as far as its stack could be followed
    signal,   // a signal, whatever it interrupted
    unknown,  // nobody saw who called
};

constexpr auto names_of(ContextRoot) {
    using enum ContextRoot;
    return std::array<std::pair<ContextRoot, std::string_view>, 3>{
        {{thread, "thread"}, {signal, "signal"}, {unknown, "unknown"}}};
}

// With what was called from there. The instructions of a function are in each of its callers, so
// these do not add up to the total.
template <class Entry, class Section>
struct InclusiveField : model::MoreCountField<Entry, Section> {
    using model::MoreCountField<Entry, Section>::MoreCountField;
    template <class S, class Use>
    void each_count(S&, Use) const {}
};

// No key of the file: what must hold of a section whose entries have inclusive counts.
struct InclusiveIsInTotal : model::EntryField {
    template <class Section>
    void write(model::JsonOutput&, const Section&) const {}
    template <class Section>
    auto keys(model::JsonCursor&, Section&, model::NothingToKeep&) const {
        return std::tuple();
    }
    void describe(model::ObjectSchema&) const {}
    template <class From, class FromField, class To, class Map>
    void copy(const From&, const FromField&, To&, const Map&) const {}
    template <class Section>
    std::optional<std::string> defect(const Section& section) const {
        for (const auto& e : section.entries)
            if (e.inclusive.count > section.totals.total) return ": more in an entry than in all";
        return {};
    }
};

template <class Place>
struct ContextEntry {
    ContextRoot root{};
    std::vector<Place> frames;     // outermost first
    std::uint64_t calls = 0;       // that led here
    model::Statistics statistics;  // instructions of the innermost function
    model::Statistics inclusive;
    bool operator==(const ContextEntry&) const = default;

    static constexpr auto fields() {
        return std::tuple(
            model::named_field("root", &ContextEntry::root),
            FramesField<ContextEntry, Place>(&ContextEntry::frames),
            model::sum_field("calls", &ContextEntry::calls),
            model::count_field(&ContextEntry::statistics),
            InclusiveField<ContextEntry, model::Hotlist<ContextEntry>>(
                "inclusive", &ContextEntry::inclusive, &model::Hotlist<ContextEntry>::totals));
    }
    // So a context is never dropped before those that it is in.
    std::uint64_t weight() const { return inclusive.count; }
    std::optional<std::string> defect() const {
        if (statistics.count > inclusive.count) return ": more in a context itself than in all";
        return {};
    }
};

// Instructions. Those of contexts that have no entry are in the inclusive counts of those that they
// are in, and unknown.
template <class Place>
struct ContextList : model::Hotlist<ContextEntry<Place>> {
    static constexpr std::string_view section_key = "contexts";
    static constexpr auto fields() { return ContextList::fields_with(InclusiveIsInTotal{}); }
    bool operator==(const ContextList&) const = default;
};

using ContextHotlist = model::Found<ContextList>;
using ContextSection = model::SectionOf<ContextList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::ContextList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::ContextList>;
