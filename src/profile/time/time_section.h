// Where the time goes, in hotlists and profiles: of threads, by what they do and in which calling
// context.
#pragma once

#include <optional>
#include <string>

#include "model/hotlist.h"
#include "profile/common/clock_look.h"
#include "profile/common/frames_field.h"

namespace shadowprof::profile {

template <class Place>
struct TimeList;

// As the clock saw it: innermost first, with return addresses. Nothing may be known of it.
template <class Owner, class Place>
struct StackField : FramesField<Owner, Place> {
    using FramesField<Owner, Place>::FramesField;
    void describe(model::ObjectSchema& schema) const {
        schema.add("frames", R"({"type": "array", "items": {"$ref": "#/$defs/index"}})", true,
                   "innermost first; none if nothing is known of the stack");
    }
    template <class From, class FromField, class Map>
    void copy(const From& from, const FromField& field, Owner& to, const Map& map) const {
        auto& frames = to.*(this->member);
        for (const auto& frame : from.*(field.member))
            frames.push_back(map(frame, !frames.empty()));
    }
    std::optional<std::string> defect(const Owner&) const { return {}; }
};

// Time is in nanoseconds: `statistics` if the thread was on a processor, else `waiting`.
template <class Place>
struct TimeEntry {
    std::string thread;  // by name
    ThreadState state{};
    std::string call;
    // The entry of the innermost function, then return addresses, each once: of a function that
    // calls itself the outermost.
    std::vector<Place> frames;
    model::Statistics statistics, waiting;
    bool operator==(const TimeEntry&) const = default;

    std::uint64_t weight() const { return statistics.count + waiting.count; }
    std::optional<std::string> defect() const {
        const auto& other = is_waiting(state) ? statistics : waiting;
        if (other.count != 0) return ": time on a processor and time of waiting in one entry";
        return {};
    }
    static constexpr auto fields() {
        return std::tuple(
            model::identity_field("thread", &TimeEntry::thread),
            model::named_field("state", &TimeEntry::state),
            model::identity_field("call", &TimeEntry::call),
            StackField<TimeEntry, Place>(&TimeEntry::frames),
            model::count_field(&TimeEntry::statistics),
            model::more_count_field("waiting", &TimeEntry::waiting, &TimeList<Place>::waiting));
    }
};

// Totals: nanoseconds on a processor, of all threads; each look at them is a sample.
template <class Place>
struct TimeList : model::Hotlist<TimeEntry<Place>> {
    model::Totals waiting;  // nanoseconds

    static constexpr std::string_view section_key = "time";
    // What is cut off would be time of which nothing is known.
    static constexpr bool is_kept_whole = true;
    static constexpr auto fields() {
        return TimeList::fields_with(
            model::MoreTotalsField<TimeList>("waiting", &TimeList::waiting));
    }
    bool operator==(const TimeList&) const = default;
};

using TimeHotlist = model::Found<TimeList>;
using TimeSection = model::SectionOf<TimeList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::TimeList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::TimeList>;
