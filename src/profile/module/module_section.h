// What customisation modules counted, in hotlists and profiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "addon/worker.h"
#include "model/hotlist.h"
#include "profile/common/named_totals.h"

namespace shadowprof::profile {

using addon::Measured;

// Count and sum are added up; least and most are of all.
struct MeasuredCodec {
    static void write(model::JsonOutput& out, const Measured& values);
    static void read(model::JsonCursor& in, Measured& values);
    static std::string schema();
};
void merge_measured(Measured& into, const Measured& other);

template <class Place>
struct ModuleList;

template <class Place>
struct ModuleEntry {
    std::string module;  // its name
    Place at{};
    std::optional<Place> called_from;  // where the function that `at` is in was called from
    std::string key;                   // as the module has put it into words
    model::Statistics statistics;      // of the module's events
    Measured values;
    bool operator==(const ModuleEntry&) const = default;

    const std::string& part() const { return module; }
    static constexpr auto fields();
};

template <class Entry>
struct MeasuredField : model::ValueField<Entry, Measured, MeasuredCodec> {
    constexpr MeasuredField()
        : model::ValueField<Entry, Measured, MeasuredCodec>(
              model::field<MeasuredCodec>("values", &Entry::values).unless_empty()) {}
    void merge(Entry& into, const Entry& other) const { merge_measured(into.values, other.values); }
};

template <class Place>
constexpr auto ModuleEntry<Place>::fields() {
    using Entry = ModuleEntry<Place>;
    using Text = model::Json<std::string>;
    return std::tuple(model::identity_field("module", &Entry::module),
                      model::place_field("at", &Entry::at),
                      model::return_address_field("called_from", &Entry::called_from),
                      model::IdentityField<Entry, std::string, Text>{
                          model::field("key", &Entry::key).unless_empty()},
                      PartCountField<Entry, ModuleList<Place>>(), MeasuredField<Entry>());
}

// Totals: events of all modules. The profile's list of files is called "modules".
template <class Place>
struct ModuleList : HotlistOfParts<ModuleEntry<Place>> {
    static constexpr std::string_view section_key = "customised";
    static constexpr std::string_view parts_key = "modules";
    static constexpr std::string_view about_parts = "the customisation modules that there were";
    static constexpr std::string_view about_texts = "what the module counts, and its arguments";
    static constexpr auto fields() { return ModuleList::fields_with(PartsField<ModuleList>()); }
    static std::string warning_if_merged(const ModuleList& a, const ModuleList& b) {
        const auto other = ModuleList::other_part(a, b);
        return other.empty() ? other
                             : "modules called " + other +
                                   " are not the same in all profiles, and were added up";
    }
    bool operator==(const ModuleList&) const = default;
};

using ModuleHotlist = model::Found<ModuleList>;
using ModuleSection = model::SectionOf<ModuleList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::ModuleList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::ModuleList>;
