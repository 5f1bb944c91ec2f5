// What rules found, in hotlists and profiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/common/named_totals.h"
#include "profile/common/state_field.h"
#include "profile/stream/stream_section.h"
#include "profile/value/value_section.h"

namespace shadowprof::profile {

template <class Place>
struct RuleList;

template <class Place>
struct RuleEntry {
    std::string rule;  // its name
    Place at{};
    std::optional<Place> target;
    std::optional<Place> caller;          // the function that it was called from
    std::optional<Place> return_address;  // or the place
    StateTexts state;
    model::Statistics statistics;              // of the rule's events
    CountedValues values;                      // if the rule asks for them
    std::optional<StreamShape<Place>> stream;  // … or for these; `at` is its first reference
    bool operator==(const RuleEntry&) const = default;

    const std::string& part() const { return rule; }
    static constexpr auto fields();
};

// The values of an entry, as those of the value profile, in an object of their own.
template <class Entry>
struct RuleValuesField : model::EntryField {
    static bool has_any(const Entry& e) { return e.values.executions.total != 0; }

    template <class... Context>
    void write(model::JsonOutput& out, const Entry& e, const Context&...) const {
        if (!has_any(e)) return;
        out.key("values").open_object();
        ValuesField::write_values(out, e.values);
        out.close_object();
    }
    auto keys(model::JsonCursor& in, Entry& e, model::NothingToKeep&) const {
        return std::tuple(model::optional("values", [&in, &values = e.values] {
            const ValuesField field;
            auto kept = field.begin_reading();
            std::apply([&](auto... keys) { in.object(keys...); }, field.keys(in, values, kept));
            field.end_reading(in, values, kept);
        }));
    }
    void describe(model::ObjectSchema& schema) const {
        model::ObjectSchema values;
        ValuesField().describe(values);
        schema.add("values", values.take(), false, "if the rule asks for values");
    }
    void merge(Entry& into, const Entry& other) const {
        if (!has_any(other)) return;
        if (has_any(into))
            ValuesField::merge_values(into.values, other.values);
        else
            into.values = other.values;
    }
    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField&, To& to, const Map&) const {
        to.values = from.values;
    }
    std::optional<std::string> defect(const Entry& e) const {
        return ValuesField::defect_of(e.values);
    }
    void shorten(Entry& e, std::size_t most) const {
        ValuesField::keep_most_frequent(e.values, most);
    }
    void sort(Entry& e) const { ValuesField::sort_values(e.values.top); }
};

template <class Place>
constexpr auto RuleEntry<Place>::fields() {
    using Entry = RuleEntry<Place>;
    const auto place = [](std::string_view key, std::optional<Place> Entry::*member,
                          bool is_return_address) {
        using Codec = model::IfSet<model::PlaceCodec>;
        return model::PlaceField<Entry, std::optional<Place>, Codec>{
            model::field<Codec>(key, member).unless_empty(), is_return_address};
    };
    return std::tuple(
        model::identity_field("rule", &Entry::rule), model::place_field("at", &Entry::at),
        place("target", &Entry::target, false), place("caller", &Entry::caller, false),
        place("return_address", &Entry::return_address, true), StateField(), StreamOfEntryField(),
        PartCountField<Entry, RuleList<Place>>(), RuleValuesField<Entry>());
}

// Totals: events of all rules. An event is an execution that fits the pattern; not seen are those
// while the rule slept, and executions of which no values were captured.
template <class Place>
struct RuleList : HotlistOfParts<RuleEntry<Place>> {
    static constexpr std::string_view section_key = "rules";
    static constexpr std::string_view parts_key = "rules";
    static constexpr std::string_view about_parts = "the rules that there were";
    static constexpr std::string_view about_texts = "pattern and action";
    static constexpr auto fields() { return RuleList::fields_with(PartsField<RuleList>()); }
    static std::string warning_if_merged(const RuleList& a, const RuleList& b) {
        const auto other = RuleList::other_part(a, b);
        return other.empty() ? other
                             : "rules called " + other +
                                   " are not the same in all profiles, and were added up";
    }
    bool operator==(const RuleList&) const = default;
};

using RuleHotlist = model::Found<RuleList>;
using RuleSection = model::SectionOf<RuleList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::RuleList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::RuleList>;
