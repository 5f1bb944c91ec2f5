// Hot data streams in hotlists and profiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/hotlist.h"

namespace shadowprof::profile {

// One of a stream's references.
template <class Place>
struct StreamReference {
    Place location{};
    std::int64_t step = 0;  // its address, less that of the reference before it; 0 of the first

    auto identity() const { return std::tie(location, step); }
    bool operator==(const StreamReference&) const = default;
    auto operator<=>(const StreamReference& other) const { return identity() <=> other.identity(); }
};

// The first references of a stream: in the file a list of each of their parts.
template <class Owner, class Place>
struct ReferencesField : model::EntryField {
    std::vector<StreamReference<Place>> Owner::*member;
    constexpr explicit ReferencesField(std::vector<StreamReference<Place>> Owner::*m) : member(m) {}

    struct Columns {
        std::vector<std::uint32_t> places;
        std::vector<std::int64_t> steps;
    };
    Columns begin_reading() const { return {}; }
    auto keys(model::JsonCursor& in, Owner&, Columns& columns) const {
        return std::tuple(model::required("references",
                                          [&in, &places = columns.places] {
                                              model::Json<std::vector<std::uint32_t>>::read(in,
                                                                                            places);
                                          }),
                          model::required("steps", [&in, &steps = columns.steps] {
                              model::Json<std::vector<std::int64_t>>::read(in, steps);
                          }));
    }
    void end_reading(model::JsonCursor& in, Owner& e, Columns& columns) const {
        if (columns.steps.size() != columns.places.size())
            in.fail("a stream whose references and steps are not of one size");
        for (std::size_t i = 0; i < columns.places.size(); ++i)
            (e.*member).push_back({columns.places[i], columns.steps[i]});
    }
    template <class... Context>
    void write(model::JsonOutput& out, const Owner& e, const Context&...) const {
        out.key("references").open_array();
        for (const auto& r : e.*member) out.number(r.location);
        out.close_array();
        out.key("steps").open_array();
        for (const auto& r : e.*member) out.signed_number(r.step);
        out.close_array();
    }
    void describe(model::ObjectSchema& schema) const {
        schema.add("references", model::schema_ref("indices"), true, "the first of the stream");
        schema.add("steps", model::Json<std::vector<std::int64_t>>::schema(), true,
                   "from the address before");
    }
    auto identity(const Owner& e) const { return std::tie(e.*member); }
    template <class Entry, class Use>
    void each_place(Entry& e, Use use) const {
        for (auto& r : e.*member) use(r.location);
    }
    template <class From, class FromField, class Map>
    void copy(const From& from, const FromField& field, Owner& to, const Map& map) const {
        for (const auto& r : from.*(field.member))
            (to.*member).push_back({map(r.location, false), r.step});
    }
    std::optional<std::string> defect(const Owner& e) const {
        if ((e.*member).empty()) return ": a stream without references";
        return {};
    }
};

// A stream: what is told of it beside how much of all references it has.
template <class Place>
struct StreamShape {
    static constexpr std::size_t most_listed = 32;

    std::vector<StreamReference<Place>> references;  // the first of them
    std::optional<Place> data;  // the first variable of a module that they access
    std::uint64_t times = 0;    // how often the sequence came
    // Summed up over these times: lines of memory that it touches, how many there would be if it
    // lay side by side in memory, and references that a constant step leads to.
    std::uint64_t lines = 0, packed_lines = 0, regular = 0;
    bool operator==(const StreamShape&) const = default;

    double each(std::uint64_t sum) const {
        return times == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(times);
    }
    static constexpr auto what_it_is() {
        using DataPlace = model::IfSet<model::PlaceCodec>;
        return std::tuple(
            ReferencesField<StreamShape, Place>(&StreamShape::references),
            model::PlaceField<StreamShape, std::optional<Place>, DataPlace>{
                model::field<DataPlace>("data", &StreamShape::data).unless_empty(), false});
    }
    static constexpr auto sums() {
        using model::sum_field;
        return std::tuple(sum_field("times", &StreamShape::times),
                          sum_field("lines", &StreamShape::lines),
                          sum_field("packed_lines", &StreamShape::packed_lines),
                          sum_field("regular", &StreamShape::regular));
    }
    static constexpr auto fields() { return std::tuple_cat(what_it_is(), sums()); }
};

template <class Place>
struct StreamEntry : StreamShape<Place> {
    model::Statistics statistics;
    bool operator==(const StreamEntry&) const = default;

    static double length(const StreamEntry& e) { return e.each(e.statistics.count); }
    static double lines_each(const StreamEntry& e) { return e.each(e.lines); }
    static double regularity(const StreamEntry& e) {
        return model::fraction(static_cast<double>(e.regular),
                               static_cast<double>(e.statistics.count));
    }
    static constexpr auto fields() {
        using namespace model;
        return std::tuple_cat(
            StreamEntry::what_it_is(), std::tuple(count_field(&StreamEntry::statistics)),
            StreamEntry::sums(),
            std::tuple(derived_field<Rounded>("length", &StreamEntry::length),
                       derived_field<Rounded>("lines_each", &StreamEntry::lines_each),
                       derived_field<Rounded>("regularity", &StreamEntry::regularity)));
    }
};

// An entry that has a stream or none, `std::optional<StreamShape<Place>> stream`: an object of its
// own, and a part of what the entry is.
struct StreamOfEntryField : model::EntryField {
    template <class Entry, class... Context>
    void write(model::JsonOutput& out, const Entry& e, const Context&...) const {
        if (!e.stream) return;
        out.key("stream");
        model::write_object(out, *e.stream);
    }
    template <class Entry>
    auto keys(model::JsonCursor& in, Entry& e, model::NothingToKeep&) const {
        return std::tuple(
            model::optional("stream", [&in, &e] { model::read_object(in, e.stream.emplace()); }));
    }
    void describe(model::ObjectSchema& schema) const {
        schema.add("stream", model::schema_of_object<StreamShape<model::LocationIndex>>(), false,
                   "if the rule asks for streams");
    }
    template <class Entry>
    auto identity(const Entry& e) const {
        using Identity = decltype(model::kept(model::identity_of(*e.stream)));
        return std::tuple(e.stream ? std::optional<Identity>(model::identity_of(*e.stream))
                                   : std::nullopt);
    }
    template <class Entry>
    void merge(Entry& into, const Entry& other) const {
        if (into.stream) model::merge_fields(*into.stream, *other.stream);
    }
    template <class Entry, class Use>
    void each_place(Entry& e, Use use) const {
        if (e.stream) model::each_place_of(*e.stream, use);
    }
    template <class From, class FromField, class To, class Map>
    void copy(const From& from, const FromField&, To& to, const Map& map) const {
        if (from.stream) model::copy_fields(*from.stream, to.stream.emplace(), map);
    }
    template <class Entry>
    std::optional<std::string> defect(const Entry& e) const {
        if (e.stream && e.stream->references.empty()) return ": a stream without references";
        return {};
    }
};

// The larger machine's stands for all.
template <class List>
struct LargestField : model::ValueField<List, std::uint64_t, model::Json<std::uint64_t>> {
    using model::ValueField<List, std::uint64_t, model::Json<std::uint64_t>>::ValueField;
    void merge(List& into, const List& other) const {
        into.*(this->member) = std::max(into.*(this->member), other.*(this->member));
    }
};

// Totals: references that were looked at, as often as their samples count. Each is in one entry at
// most.
template <class Place>
struct StreamList : model::Hotlist<StreamEntry<Place>> {
    std::uint64_t instructions = 0;  // of which they are the references
    std::uint64_t nearby = 0;        // references by rsp, or to what the instruction accessed last
    std::uint64_t cache = 0;         // bytes of the nearest cache

    static constexpr std::string_view section_key = "streams";
    static constexpr auto fields() {
        return StreamList::fields_with(
            model::sum_field("instructions", &StreamList::instructions),
            model::sum_field("nearby", &StreamList::nearby),
            LargestField<StreamList>{model::field("cache_bytes", &StreamList::cache)});
    }
    bool operator==(const StreamList&) const = default;
};

using StreamHotlist = model::Found<StreamList>;
using StreamSection = model::SectionOf<StreamList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::StreamList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::StreamList>;
