// What requests cost, in hotlists and profiles.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "model/hotlist.h"
#include "profile/time/time_section.h"

namespace shadowprof::profile {

template <class Place>
struct RequestList;

// Time of a request, on a processor or waiting, has the stack, the thread and the system call, as
// the clock saw them; its instructions are in an entry without. Of threads that worked for none all
// is empty.
template <class Place>
struct RequestEntry {
    std::map<std::string, std::string> attributes;
    std::string trace, span;  // hexadecimal; empty: none, or too many to be told
    std::string thread, call;
    std::vector<Place> frames;
    model::Statistics statistics, waiting;  // nanoseconds
    model::Statistics instructions;
    bool operator==(const RequestEntry&) const = default;

    bool is_of_none() const { return attributes.empty() && span.empty(); }
    std::uint64_t weight() const { return statistics.count + waiting.count + instructions.count; }
    static constexpr auto fields() {
        return std::tuple(model::identity_field("attributes", &RequestEntry::attributes),
                          model::identity_field("trace", &RequestEntry::trace),
                          model::identity_field("span", &RequestEntry::span),
                          model::identity_field("thread", &RequestEntry::thread),
                          model::identity_field("call", &RequestEntry::call),
                          StackField<RequestEntry, Place>(&RequestEntry::frames),
                          model::count_field(&RequestEntry::statistics),
                          model::more_count_field("waiting", &RequestEntry::waiting,
                                                  &RequestList<Place>::waiting),
                          model::more_count_field("instructions", &RequestEntry::instructions,
                                                  &RequestList<Place>::instructions));
    }
};

// Totals: nanoseconds on a processor, since the program began to publish requests. Unknown are
// those of threads whose request could not be read.
template <class Place>
struct RequestList : model::Hotlist<RequestEntry<Place>> {
    model::Totals waiting;       // nanoseconds
    model::Totals instructions;  // of samples that began since

    static constexpr std::string_view section_key = "requests";
    static constexpr bool is_kept_whole = true;  // as time is
    static constexpr auto fields() {
        return RequestList::fields_with(
            model::MoreTotalsField<RequestList>("waiting", &RequestList::waiting),
            model::MoreTotalsField<RequestList>("instructions", &RequestList::instructions));
    }
    bool operator==(const RequestList&) const = default;
};

using RequestHotlist = model::Found<RequestList>;
using RequestSection = model::SectionOf<RequestList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::RequestList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::RequestList>;
