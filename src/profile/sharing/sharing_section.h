// Cache lines that threads share, in hotlists and profiles.
#pragma once

#include <optional>
#include <string>

#include "model/hotlist.h"
#include "profile/sharing/line_window.h"

namespace shadowprof::profile {

enum class SharedMemory : std::uint8_t {
    variable,  // of a module, with a name
    stack,
    other,  // on the heap, or mapped
};

constexpr auto names_of(SharedMemory) {
    return std::array<std::pair<SharedMemory, std::string_view>, 3>{{
        {SharedMemory::variable, "variable"},
        {SharedMemory::stack, "stack"},
        {SharedMemory::other, "other"},
    }};
}

template <class Place>
struct SharingEntry {
    Sharing kind{};
    Place location{};  // the access
    Place other{};     // the access of another thread that takes the line from it
    SharedMemory memory{};
    std::optional<Place> data, other_data;       // of variables: what the two touch
    std::uint32_t offset = 0, other_offset = 0;  // … in the line, once
    model::Statistics statistics;
    std::uint64_t windows = 0;  // stretches of time in which it was so
    bool operator==(const SharingEntry&) const = default;

    static constexpr auto fields() {
        using namespace model;
        return std::tuple(named_field("kind", &SharingEntry::kind),
                          place_field("location", &SharingEntry::location),
                          place_field("other", &SharingEntry::other),
                          named_field("memory", &SharingEntry::memory),
                          optional_place("data", &SharingEntry::data),
                          optional_place("other_data", &SharingEntry::other_data),
                          ValueField<SharingEntry, std::uint32_t, Json<std::uint32_t>>{
                              field("offset", &SharingEntry::offset)},
                          ValueField<SharingEntry, std::uint32_t, Json<std::uint32_t>>{
                              field("other_offset", &SharingEntry::other_offset)},
                          count_field(&SharingEntry::statistics),
                          sum_field("windows", &SharingEntry::windows));
    }
    std::optional<std::string> defect() const {
        if (offset >= cache_line || other_offset >= cache_line)
            return ": an offset beyond the line";
        return {};
    }

  private:
    static constexpr auto optional_place(std::string_view key,
                                         std::optional<Place> SharingEntry::*member) {
        using Codec = model::IfSet<model::PlaceCodec>;
        return model::PlaceField<SharingEntry, std::optional<Place>, Codec>{
            model::field<Codec>(key, member).unless_empty(), false};
    }
};

// Totals: accesses to memory while several threads ran. Those of an entry are as many as may have
// had to wait for the line; `unknown` are the others.
template <class Place>
struct SharingList : model::Hotlist<SharingEntry<Place>> {
    std::uint64_t windows = 0;      // stretches of time that were looked at
    std::uint64_t nanoseconds = 0;  // that all of them took while they were recorded
    std::uint64_t shared = 0;       // of them: in which two threads or more took part

    static constexpr std::string_view section_key = "sharing";
    static constexpr auto fields() {
        return SharingList::fields_with(
            model::sum_field("windows", &SharingList::windows),
            model::sum_field("windows_of_several", &SharingList::shared),
            model::sum_field("windows_ns", &SharingList::nanoseconds));
    }
    bool operator==(const SharingList&) const = default;
};

using SharingHotlist = model::Found<SharingList>;
using SharingSection = model::SectionOf<SharingList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::SharingList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::SharingList>;
