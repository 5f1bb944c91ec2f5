// The functions of a calling context, as a field of an entry.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/hotlist.h"

namespace shadowprof::profile {

// By their entries, outermost first.
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
        schema.add("frames", model::schema_ref("indices"), true, "outermost first");
    }
    auto identity(const Owner& e) const { return std::tie(e.*member); }
    template <class Entry, class Use>
    void each_place(Entry& e, Use use) const {
        for (auto& frame : e.*member) use(frame);
    }
    template <class From, class FromField, class Map>
    void copy(const From& from, const FromField& field, Owner& to, const Map& map) const {
        for (const auto& frame : from.*(field.member)) (to.*member).push_back(map(frame, false));
    }
    std::optional<std::string> defect(const Owner& e) const {
        if ((e.*member).empty()) return ": an entry without frames";
        return {};
    }
};

}  // namespace shadowprof::profile
