// Hotlists of several things that were asked for by name (rules, modules), each with totals of its
// own: an entry's share is of the thing that it belongs to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hotlist.h"

namespace shadowprof::profile {

struct NamedTotals {
    std::string name;
    std::string text;  // what was asked for
    // Of what was seen.
    model::Totals totals = {};
    // All events, estimated where not all were seen.
    std::uint64_t stands_for = 0;
    // What it says itself of what it saw, in order; of several runs some.
    std::vector<std::string> notes = {};
    static constexpr std::size_t most_notes = 32;
    bool operator==(const NamedTotals&) const = default;

    // How many of its events an entry stands for.
    std::uint64_t estimated(std::uint64_t count) const;
    // Lines for reports: of its events, then its own.
    std::vector<std::string> lines() const;
    void add_note(const std::string& note);
};

// In an array.
void write_named_totals(model::JsonOutput& out, std::string_view key,
                        const std::vector<NamedTotals>& parts);
void read_named_totals(model::JsonCursor& in, std::vector<NamedTotals>& parts);
std::string schema_of_named_totals(std::string_view of_text);
void merge_named_totals(std::vector<NamedTotals>& into, const std::vector<NamedTotals>& other);
// So many were read of all that were executed: what was seen stands for so much.
std::uint64_t scaled(std::uint64_t count, std::uint64_t all, std::uint64_t part);

// Its lists have `parts_key`, `about_texts`, and entries with `part()`, the name. Totals: events of
// all.
template <class EntryType>
struct HotlistOfParts : model::Hotlist<EntryType> {
    std::vector<NamedTotals> parts;

    const NamedTotals* find_part(std::string_view name) const {
        const auto found = std::find_if(parts.begin(), parts.end(),
                                        [&](const NamedTotals& p) { return p.name == name; });
        return found == parts.end() ? nullptr : &*found;
    }
    const model::Totals& totals_of(std::string_view name) const {
        const auto* const part = find_part(name);
        return part ? part->totals : this->totals;
    }
    // What two parts of one name that are not the same are called; empty if there are none.
    static std::string other_part(const HotlistOfParts& a, const HotlistOfParts& b) {
        for (const auto& part : a.parts)
            if (const auto* other = b.find_part(part.name); other && other->text != part.text)
                return part.name;
        return {};
    }
    bool operator==(const HotlistOfParts&) const = default;
};

template <class List>
struct PartsField : model::EntryField {
    void write(model::JsonOutput& out, const List& list) const {
        write_named_totals(out, List::parts_key, list.parts);
    }
    auto keys(model::JsonCursor& in, List& list, model::NothingToKeep&) const {
        return std::tuple(model::required(
            List::parts_key, [&in, &parts = list.parts] { read_named_totals(in, parts); }));
    }
    void describe(model::ObjectSchema& schema) const {
        schema.add(List::parts_key, schema_of_named_totals(List::about_texts), true,
                   List::about_parts);
    }
    void merge(List& into, const List& other) const { merge_named_totals(into.parts, other.parts); }
    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField&, To& to, const Map&) const {
        to.parts = from.parts;
    }
    std::optional<std::string> defect(const List& list) const {
        for (const auto& e : list.entries)
            if (!list.find_part(e.part())) return ": an entry of something that is not listed";
        return {};
    }
};

// Counts of an entry are of its part's totals, and of the section's.
template <class Entry, class List>
struct PartCountField : model::CountField<Entry, List> {
    constexpr PartCountField() : model::CountField<Entry, List>(&Entry::statistics, nullptr) {}

    template <class L>
    void write(model::JsonOutput& out, const Entry& e, const L& list) const {
        model::write_count(out, e.statistics, list.totals_of(e.part()));
    }
    template <class L, class Use>
    void each_count(L& list, Use use) const {
        use("", list.totals, [](const auto& e) { return e.statistics.count; });
        for (auto& part : list.parts)
            use(std::string_view(part.name), part.totals,
                [&part](const auto& e) { return e.part() == part.name ? e.statistics.count : 0; });
    }
    template <class L>
    std::optional<std::string> doubt(const L& list) const {
        for (const auto& e : list.entries)
            if (!model::is_possible(e.statistics, list.totals_of(e.part())))
                return "an entry's statistics do not fit those of what it belongs to";
        return {};
    }
};

// Side by side: of each part the entries that have most of it come first.
template <class List>
auto parts_in_turn(const List& list, std::size_t most_rows) {
    std::vector<const typename List::Entry*> order, rest;
    const auto of_each =
        std::max<std::size_t>(1, most_rows / std::max<std::size_t>(1, list.parts.size()));
    for (const auto& part : list.parts) {
        std::size_t taken = 0;
        for (const auto& e : list.entries)
            if (e.part() == part.name) (taken++ < of_each ? order : rest).push_back(&e);
    }
    order.insert(order.end(), rest.begin(), rest.end());
    return order;
}

}  // namespace shadowprof::profile
