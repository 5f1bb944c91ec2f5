// The fields of which entries and sections consist. Each knows all that is done with it:
//
//   write, keys, describe   the profile file and its schema (as in fields.h)
//   identity                what tells entries apart, and orders those of equal weight
//   merge                   how the same entry of two profiles becomes one
//   each_place              the places in code that it refers to
//   copy                    from a profiler's entry to that of a file, place by place
//   defect                  what contradicts itself, to be said after the name of the section
//   doubt                   the same of a whole section, where numbers are wrong but nothing breaks
//   each_count              counts of events, and the totals that they are part of
//
// An entry type is a template over Place: a trace::Location in what profilers find, the index of a
// location in files. What a profile type has that is like nothing else is a field of its own in its
// folder, derived from EntryField, with those of these functions in which it differs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/fields.h"
#include "model/run_facts.h"
#include "model/statistics.h"
#include "model/sums.h"

namespace shadowprof::model {

// What most fields do with most questions: nothing.
struct EntryField {
    NothingToKeep begin_reading() const { return {}; }
    template <class Entry, class Kept>
    void end_reading(JsonCursor&, Entry&, Kept&) const {}
    template <class Entry>
    auto identity(const Entry&) const {
        return std::tuple();
    }
    template <class Entry>
    void merge(Entry&, const Entry&) const {}
    template <class Entry, class Use>
    void each_place(Entry&, Use) const {}
    template <class Entry>
    std::optional<std::string> defect(const Entry&) const {
        return {};
    }
    template <class Section, class Use>
    void each_count(Section&, Use) const {}
    template <class Section>
    std::optional<std::string> doubt(const Section&) const {
        return {};
    }
    // Limits what one entry lists. The rest of it becomes unknown.
    template <class Entry>
    void shorten(Entry&, std::size_t) const {}
    // Puts what one entry lists in order, after merging.
    template <class Entry>
    void sort(Entry&) const {}
    // Where an entry names an instruction's operand: gives it its text.
    template <class Entry, class OperandText>
    void name_operand(Entry&, const OperandText&) const {}
};

// A value that is written, read and copied as it is.
template <class Owner, class T, class Codec>
struct ValueField : EntryField, Field<Owner, T, Codec> {
    using Field<Owner, T, Codec>::begin_reading;
    using Field<Owner, T, Codec>::end_reading;
    constexpr explicit ValueField(Field<Owner, T, Codec> f) : Field<Owner, T, Codec>(f) {}

    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField& field, To& to, const Map&) const {
        to.*(this->member) = from.*(field.member);
    }
};

// Part of what the entry is.
template <class Owner, class T, class Codec>
struct IdentityField : ValueField<Owner, T, Codec> {
    using ValueField<Owner, T, Codec>::ValueField;
    template <class Entry>
    auto identity(const Entry& e) const {
        return std::tie(e.*(this->member));
    }
};
template <class Codec, class Owner, class T>
constexpr auto identity_field(std::string_view key, T Owner::*member) {
    return IdentityField<Owner, T, Codec>{field<Codec>(key, member)};
}
template <class Owner, class T>
constexpr auto identity_field(std::string_view key, T Owner::*member) {
    return IdentityField<Owner, T, Json<T>>{field(key, member)};
}
template <class Owner, class Kind>
constexpr auto named_field(std::string_view key, Kind Owner::*member) {
    return IdentityField<Owner, Kind, Named<Kind>>{field<Named<Kind>>(key, member)};
}

// A place in code; part of what the entry is, unless told otherwise.
struct PlaceCodec : Json<LocationIndex> {};

template <class Owner, class T, class Codec>
struct PlaceField : IdentityField<Owner, T, Codec> {
    bool is_return_address;
    constexpr PlaceField(Field<Owner, T, Codec> f, bool return_address)
        : IdentityField<Owner, T, Codec>(f), is_return_address(return_address) {}

    template <class Entry, class Use>
    void each_place(Entry& e, Use use) const {
        if constexpr (requires { (e.*(this->member)).has_value(); }) {
            if (e.*(this->member)) use(*(e.*(this->member)));
        } else {
            use(e.*(this->member));
        }
    }
    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField& field, To& to, const Map& map) const {
        const auto& place = from.*(field.member);
        if constexpr (requires { place.has_value(); }) {
            if (place) to.*(this->member) = map(*place, is_return_address);
        } else {
            to.*(this->member) = map(place, is_return_address);
        }
    }
};
template <class Owner, class Place>
constexpr auto place_field(std::string_view key, Place Owner::*member) {
    return PlaceField<Owner, Place, PlaceCodec>{field<PlaceCodec>(key, member), false};
}
template <class Owner, class Place>
constexpr auto return_address_field(std::string_view key, std::optional<Place> Owner::*member) {
    using Codec = IfSet<PlaceCodec>;
    return PlaceField<Owner, std::optional<Place>, Codec>{field<Codec>(key, member).unless_empty(),
                                                          true};
}

// A number that is added up.
template <class Owner, class T, class Codec>
struct SumField : ValueField<Owner, T, Codec> {
    using ValueField<Owner, T, Codec>::ValueField;
    template <class Entry>
    void merge(Entry& into, const Entry& other) const {
        add_up(into.*(this->member), other.*(this->member));
    }
};
template <class Codec, class Owner, class T>
constexpr auto sum_field(std::string_view key, T Owner::*member) {
    return SumField<Owner, T, Codec>{field<Codec>(key, member)};
}
template <class Owner, class T>
constexpr auto sum_field(std::string_view key, T Owner::*member) {
    return SumField<Owner, T, Json<T>>{field(key, member)};
}

// Which of its instruction's operands an entry is about: a text for people, and the number of the
// operand, which is what the entry is.
template <class Owner, class Place>
struct OperandField : EntryField {
    Place Owner::*location;

    constexpr explicit OperandField(Place Owner::*of) : location(of) {}

    template <class Entry, class... Context>
    void write(JsonOutput& out, const Entry& e, const Context&...) const {
        out.key("operand").text(e.operand);
        out.key("operand_index").number(e.operand_index);
    }
    template <class Entry>
    auto keys(JsonCursor& in, Entry& e, NothingToKeep&) const {
        return std::tuple(
            required("operand", [&in, &e] { e.operand = in.text(); }),
            required("operand_index", [&in, &e] { e.operand_index = in.small_number(); }));
    }
    void describe(ObjectSchema& schema) const {
        schema.add("operand", Json<std::string>::schema(), true);
        schema.add("operand_index", Json<std::uint32_t>::schema(), true);
    }
    template <class Entry>
    auto identity(const Entry& e) const {
        return std::tie(e.operand_index);
    }
    template <class Entry>
    void merge(Entry& into, const Entry& other) const {
        into.operand = std::max(into.operand, other.operand);
    }
    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField&, To& to, const Map&) const {
        to.operand = from.operand;
        to.operand_index = from.operand_index;
    }
    template <class Entry, class OperandText>
    void name_operand(Entry& e, const OperandText& text) const {
        e.operand = text(e.*location, e.operand_index);
    }
};

// How often the entry was seen, as a share of one of its section's totals. Share and interval are
// derived from the integers beside them.
void write_share(JsonOutput& out, const Estimate& estimate);
void write_count(JsonOutput& out, const Statistics& statistics, const Totals& totals);
// Whether such samples can be part of all samples.
bool is_possible(const Statistics& statistics, const Totals& totals);
inline auto keys_of_count(JsonCursor& in, Statistics& s) {
    return std::tuple(required("count", [&in, &s] { s.count = in.number(); }),
                      required("stats", [&in, &s] {
                          in.object(required("samples", [&] { s.samples = in.number(); }),
                                    required("squares", [&] { s.squares = in.hex128(); }),
                                    required("products", [&] { s.products = in.hex128(); }));
                      }));
}

template <class Entry, class Section>
struct CountField : EntryField {
    Statistics Entry::*member;
    Totals Section::*totals;

    constexpr CountField(Statistics Entry::*m, Totals Section::*t) : member(m), totals(t) {}

    template <class E, class S>
    void write(JsonOutput& out, const E& e, const S& section) const {
        write_count(out, e.*member, section.*totals);
    }
    template <class E>
    auto keys(JsonCursor& in, E& e, NothingToKeep&) const {
        return keys_of_count(in, e.*member);
    }
    void describe(ObjectSchema& schema) const { schema.extend("counted"); }
    template <class E>
    void merge(E& into, const E& other) const {
        add_up(into.*member, other.*member);
    }
    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField& field, To& to, const Map&) const {
        to.*member = from.*(field.member);
    }
    template <class S, class Use>
    void each_count(S& section, Use use) const {
        use("", section.*totals, [this](const auto& e) { return (e.*member).count; });
    }
    template <class S>
    std::optional<std::string> doubt(const S& section) const {
        for (const auto& e : section.entries)
            if (!is_possible(e.*member, section.*totals))
                return "an entry's statistics do not fit its section's";
        return {};
    }
};

// The same in an object, for what is counted besides.
template <class Entry, class Section>
struct MoreCountField : CountField<Entry, Section> {
    std::string_view key;

    constexpr MoreCountField(std::string_view k, Statistics Entry::*m, Totals Section::*t)
        : CountField<Entry, Section>(m, t), key(k) {}

    template <class E, class S>
    void write(JsonOutput& out, const E& e, const S& section) const {
        out.key(key).open_object();
        CountField<Entry, Section>::write(out, e, section);
        out.close_object();
    }
    template <class E>
    auto keys(JsonCursor& in, E& e, NothingToKeep&) const {
        return std::tuple(required(key, [&in, &statistics = e.*(this->member)] {
            std::apply([&](auto... keys) { in.object(keys...); }, keys_of_count(in, statistics));
        }));
    }
    void describe(ObjectSchema& schema) const { schema.add(key, schema_ref("counted"), true); }
    template <class S, class Use>
    void each_count(S& section, Use use) const {
        use(key, section.*(this->totals),
            [this](const auto& e) { return (e.*(this->member)).count; });
    }
};

// Written for readers that do not want to work it out; never read.
template <class Codec, class Owner, class T>
struct Derived : EntryField {
    std::string_view key;
    T (*derive)(const Owner&);

    constexpr Derived(std::string_view k, T (*d)(const Owner&)) : key(k), derive(d) {}

    static constexpr bool is_optional = requires(T t) { t.has_value(); };
    template <class Entry, class... Context>
    void write(JsonOutput& out, const Entry& e, const Context&...) const {
        const auto value = derive(e);
        if constexpr (is_optional) {
            if (value) Codec::write(out.key(key), *value);
        } else {
            Codec::write(out.key(key), value);
        }
    }
    template <class Entry>
    auto keys(JsonCursor&, Entry&, NothingToKeep&) const {
        return std::tuple();
    }
    void describe(ObjectSchema& schema) const { schema.add(key, Codec::schema(), !is_optional); }
    template <class From, class FromField, class To, class Map>
    void copy(const From&, const FromField&, To&, const Map&) const {}
};
template <class Codec, class Owner, class T>
constexpr auto derived_field(std::string_view key, T (*derive)(const Owner&)) {
    return Derived<Codec, Owner, T>{key, derive};
}

// --- of a section

void write_totals(JsonOutput& out, const Totals& totals);
inline auto keys_of_totals(JsonCursor& in, Totals& t) {
    return std::tuple(required("total", [&in, &t] { t.total = in.number(); }),
                      required("unknown", [&in, &t] { t.unknown = in.number(); }),
                      required("exhaustive", [&in, &t] { t.exhaustive = in.boolean(); }),
                      required("samples", [&in, &t] { t.samples = in.number(); }),
                      required("total_squares", [&in, &t] { t.total_squares = in.hex128(); }));
}

// The totals of all its entries, among the section's own keys.
template <class Owner>
struct TotalsField : EntryField {
    Totals Owner::*member;
    constexpr explicit TotalsField(Totals Owner::*m) : member(m) {}

    template <class Section>
    void write(JsonOutput& out, const Section& section) const {
        write_totals(out, section.*member);
    }
    template <class Section>
    auto keys(JsonCursor& in, Section& section, NothingToKeep&) const {
        return keys_of_totals(in, section.*member);
    }
    void describe(ObjectSchema& schema) const { schema.extend("hotlist"); }
    template <class Section>
    void merge(Section& into, const Section& other) const {
        add_up(into.*member, other.*member);
    }
    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField& field, To& to, const Map&) const {
        to.*member = from.*(field.member);
    }
};

// Totals of something else, in an object.
template <class Owner>
struct MoreTotalsField : TotalsField<Owner> {
    std::string_view key;
    constexpr MoreTotalsField(std::string_view k, Totals Owner::*m)
        : TotalsField<Owner>(m), key(k) {}

    template <class Section>
    void write(JsonOutput& out, const Section& section) const {
        out.key(key).open_object();
        write_totals(out, section.*(this->member));
        out.close_object();
    }
    template <class Section>
    auto keys(JsonCursor& in, Section& section, NothingToKeep&) const {
        return std::tuple(required(key, [&in, &totals = section.*(this->member)] {
            std::apply([&](auto... keys) { in.object(keys...); }, keys_of_totals(in, totals));
        }));
    }
    void describe(ObjectSchema& schema) const { schema.add(key, schema_ref("totals"), true); }
};

// The entries; see hotlist.h for what is done with them.
template <class Owner, class Entry>
struct EntriesField : EntryField {
    std::vector<Entry> Owner::*member;
    constexpr explicit EntriesField(std::vector<Entry> Owner::*m) : member(m) {}

    template <class Section>
    void write(JsonOutput& out, const Section& section) const {
        out.key("entries").open_array();
        for (const auto& e : section.*member) {
            out.break_line();
            out.open_object();
            write_members(out, e, section);
            out.close_object();
        }
        out.break_line();
        out.close_array();
    }
    template <class Section>
    auto keys(JsonCursor& in, Section& section, NothingToKeep&) const {
        return std::tuple(required("entries", [&in, &entries = section.*member] {
            in.array([&] { read_object(in, entries.emplace_back()); });
            entries.shrink_to_fit();
        }));
    }
    void describe(ObjectSchema& schema) const {
        schema.add("entries", R"({"items": )" + schema_of_object<Entry>() + "}", false);
    }
    template <class From, class FromField, class To, class Map>
    void copy(const From&, const FromField&, To&, const Map&) const {}
};

}  // namespace shadowprof::model
