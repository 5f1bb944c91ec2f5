// Call stacks in hotlists and profiles.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/hotlist.h"

namespace shadowprof::profile {

// The frames of a stack: all but the innermost are return addresses.
template <class Owner, class Place>
struct FramesField : model::EntryField {
    std::vector<Place> Owner::*member;
    constexpr explicit FramesField(std::vector<Place> Owner::*m) : member(m) {}

    template <class... Context>
    void write(model::JsonOutput& out, const Owner& e, const Context&...) const {
        model::Json<std::vector<Place>>::write(out.key("frames"), e.*member);
    }
    auto keys(model::JsonCursor& in, Owner& e, model::NothingToKeep&) const {
        return std::tuple(model::required("frames", [&in, &frames = e.*member] {
            model::Json<std::vector<Place>>::read(in, frames);
        }));
    }
    void describe(model::ObjectSchema& schema) const {
        schema.add("frames", model::schema_ref("indices"), true, "innermost first");
    }
    auto identity(const Owner& e) const { return std::tie(e.*member); }
    template <class Entry, class Use>
    void each_place(Entry& e, Use use) const {
        for (auto& frame : e.*member) use(frame);
    }
    template <class From, class FromField, class Map>
    void copy(const From& from, const FromField& field, Owner& to, const Map& map) const {
        auto& frames = to.*member;
        for (const auto& frame : from.*(field.member))
            frames.push_back(map(frame, !frames.empty()));
    }
    std::optional<std::string> defect(const Owner& e) const {
        if ((e.*member).empty()) return ": an entry without frames";
        return {};
    }
};

template <class Place>
struct StackEntry {
    std::vector<Place> frames;  // innermost first
    model::Statistics statistics;
    bool operator==(const StackEntry&) const = default;

    static constexpr auto fields() {
        return std::tuple(FramesField<StackEntry, Place>(&StackEntry::frames),
                          model::count_field(&StackEntry::statistics));
    }
};

// One event a thread of a sample.
template <class Place>
struct StackList : model::Hotlist<StackEntry<Place>> {
    static constexpr std::string_view section_key = "stacks";
    static constexpr auto fields() { return StackList::fields_with(); }
    bool operator==(const StackList&) const = default;
};

using StackHotlist = model::Found<StackList>;
using StackSection = model::SectionOf<StackList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::StackList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::StackList>;
