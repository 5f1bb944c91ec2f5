// What rules found, in hotlists and profiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hotlist.h"
#include "profile/value/value_section.h"

namespace shadowprof::profile {

// One of the rules that a run had.
struct RuleFound {
    std::string name;
    std::string text;  // as it was given: pattern and action
    // Of what was seen: events are executions that fit the pattern.
    model::Totals totals;
    // All events, estimated where not all were seen: times the rule slept, and executions of which
    // no values were captured.
    std::uint64_t stands_for = 0;
    bool operator==(const RuleFound&) const = default;
};

template <class Place>
struct RuleList;

template <class Place>
struct RuleEntry {
    std::string rule;  // its name
    Place at{};
    std::optional<Place> target;
    std::optional<Place> caller;          // the function that it was called from
    std::optional<Place> return_address;  // or the place
    std::string thread;
    std::string system_call;
    model::Statistics statistics;  // of the rule's events
    CountedValues values;          // if the rule asks for them
    bool operator==(const RuleEntry&) const = default;

    static constexpr auto fields();
};

// Counts of an entry are of its rule's totals, and of the section's, which are those of all rules.
template <class Place>
struct RuleCountField : model::CountField<RuleEntry<Place>, RuleList<Place>> {
    using Entry = RuleEntry<Place>;
    constexpr RuleCountField()
        : model::CountField<Entry, RuleList<Place>>(&Entry::statistics, nullptr) {}

    template <class List>
    void write(model::JsonOutput& out, const Entry& e, const List& list) const {
        model::write_count(out, e.statistics, list.totals_of(e.rule));
    }
    template <class List, class Use>
    void each_count(List& list, Use use) const {
        use("", list.totals, [](const auto& e) { return e.statistics.count; });
        for (auto& rule : list.rules)
            use(std::string_view(rule.name), rule.totals,
                [&rule](const auto& e) { return e.rule == rule.name ? e.statistics.count : 0; });
    }
    template <class List>
    std::optional<std::string> doubt(const List& list) const {
        for (const auto& e : list.entries)
            if (!model::is_possible(e.statistics, list.totals_of(e.rule)))
                return "an entry's statistics do not fit its rule's";
        return {};
    }
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
    using Text = model::Json<std::string>;
    const auto text = [](std::string_view key, std::string Entry::*member) {
        return model::IdentityField<Entry, std::string, Text>{
            model::field(key, member).unless_empty()};
    };
    const auto place = [](std::string_view key, std::optional<Place> Entry::*member,
                          bool is_return_address) {
        using Codec = model::IfSet<model::PlaceCodec>;
        return model::PlaceField<Entry, std::optional<Place>, Codec>{
            model::field<Codec>(key, member).unless_empty(), is_return_address};
    };
    return std::tuple(model::identity_field("rule", &Entry::rule),
                      model::place_field("at", &Entry::at), place("target", &Entry::target, false),
                      place("caller", &Entry::caller, false),
                      place("return_address", &Entry::return_address, true),
                      text("thread", &Entry::thread), text("system_call", &Entry::system_call),
                      RuleCountField<Place>(), RuleValuesField<Entry>());
}

// The rules, in an array.
void write_rules(model::JsonOutput& out, const std::vector<RuleFound>& rules);
void read_rules(model::JsonCursor& in, std::vector<RuleFound>& rules);
std::string schema_of_rules();
void merge_rules(std::vector<RuleFound>& into, const std::vector<RuleFound>& other);

template <class List>
struct RulesField : model::EntryField {
    void write(model::JsonOutput& out, const List& list) const { write_rules(out, list.rules); }
    auto keys(model::JsonCursor& in, List& list, model::NothingToKeep&) const {
        return std::tuple(
            model::required("rules", [&in, &rules = list.rules] { read_rules(in, rules); }));
    }
    void describe(model::ObjectSchema& schema) const {
        schema.add("rules", schema_of_rules(), true, "the rules that there were");
    }
    void merge(List& into, const List& other) const { merge_rules(into.rules, other.rules); }
    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField&, To& to, const Map&) const {
        to.rules = from.rules;
    }
    std::optional<std::string> defect(const List& list) const {
        for (const auto& e : list.entries)
            if (!list.find_rule(e.rule)) return ": an entry of a rule that there is not";
        return {};
    }
};

// Totals: events of all rules.
template <class Place>
struct RuleList : model::Hotlist<RuleEntry<Place>> {
    std::vector<RuleFound> rules;

    const RuleFound* find_rule(std::string_view name) const {
        const auto found = std::find_if(rules.begin(), rules.end(),
                                        [&](const RuleFound& rule) { return rule.name == name; });
        return found == rules.end() ? nullptr : &*found;
    }
    const model::Totals& totals_of(std::string_view name) const {
        const auto* const rule = find_rule(name);
        return rule ? rule->totals : this->totals;
    }

    static constexpr std::string_view section_key = "rules";
    static constexpr auto fields() { return RuleList::fields_with(RulesField<RuleList>()); }
    static std::string warning_if_merged(const RuleList& a, const RuleList& b) {
        for (const auto& rule : a.rules)
            if (const auto* other = b.find_rule(rule.name); other && other->text != rule.text)
                return "rules called " + rule.name +
                       " are not the same in all profiles, and were added up";
        return {};
    }
    bool operator==(const RuleList&) const = default;
};

using RuleHotlist = model::Found<RuleList>;
using RuleSection = model::SectionOf<RuleList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::RuleList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::RuleList>;
