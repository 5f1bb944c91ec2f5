// Paths in hotlists and profiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/hotlist.h"

namespace shadowprof::profile {

// A block of a path as every engine sees it: where it starts and how far it goes.
template <class Place>
struct PathBlock {
    Place start{};
    Place end{};  // its last instruction
    std::uint32_t instructions = 0;

    auto identity() const { return std::tie(start, instructions, end); }
    bool operator==(const PathBlock&) const = default;
    auto operator<=>(const PathBlock& other) const { return identity() <=> other.identity(); }
};

// The blocks of a path: in the file a list of each of their parts.
template <class Owner, class Place>
struct BlocksField : model::EntryField {
    using Block = PathBlock<Place>;
    std::vector<Block> Owner::*member;
    constexpr explicit BlocksField(std::vector<Block> Owner::*m) : member(m) {}

    using Numbers = std::vector<std::uint32_t>;
    struct Columns {
        Numbers starts, ends, lengths;
    };
    Columns begin_reading() const { return {}; }
    auto keys(model::JsonCursor& in, Owner&, Columns& columns) const {
        const auto column = [&in](std::string_view key, Numbers& numbers) {
            return model::required(key,
                                   [&in, &numbers] { model::Json<Numbers>::read(in, numbers); });
        };
        return std::tuple(column("blocks", columns.starts), column("ends", columns.ends),
                          column("lengths", columns.lengths));
    }
    void end_reading(model::JsonCursor& in, Owner& e, Columns& columns) const {
        const auto& [starts, ends, lengths] = columns;
        if (ends.size() != starts.size() || lengths.size() != starts.size())
            in.fail("a path whose blocks, ends and lengths are not of one size");
        auto& blocks = e.*member;
        blocks.reserve(starts.size());
        for (std::size_t i = 0; i < starts.size(); ++i)
            blocks.push_back({starts[i], ends[i], lengths[i]});
    }
    template <class... Context>
    void write(model::JsonOutput& out, const Owner& e, const Context&...) const {
        const auto column = [&](std::string_view key, auto part) {
            out.key(key).open_array();
            for (const auto& block : e.*member) out.number(block.*part);
            out.close_array();
        };
        column("blocks", &Block::start);
        column("ends", &Block::end);
        column("lengths", &Block::instructions);
    }
    void describe(model::ObjectSchema& schema) const {
        schema.add("blocks", model::schema_ref("indices"), true, "where each block starts");
        schema.add("ends", model::schema_ref("indices"), true, "its last instruction");
        schema.add("lengths", model::schema_ref("indices"), true, "its instructions");
    }
    auto identity(const Owner& e) const { return std::tie(e.*member); }
    template <class Entry, class Use>
    void each_place(Entry& e, Use use) const {
        for (auto& block : e.*member) use(block.start), use(block.end);
    }
    template <class From, class FromField, class Map>
    void copy(const From& from, const FromField& field, Owner& to, const Map& map) const {
        for (const auto& block : from.*(field.member))
            (to.*member)
                .push_back({map(block.start, false), map(block.end, false), block.instructions});
    }
    std::optional<std::string> defect(const Owner& e) const {
        if ((e.*member).empty()) return ": an entry without blocks";
        return {};
    }
};

template <class Place>
struct PathEntry {
    std::vector<PathBlock<Place>> blocks;
    model::Statistics statistics;

    // Of one execution.
    std::uint64_t instructions() const {
        std::uint64_t sum = 0;
        for (const auto& block : blocks) sum += block.instructions;
        return sum;
    }
    // What part of this many instructions all its executions are.
    double part_of(std::uint64_t all) const {
        return model::fraction(
            static_cast<double>(instructions()) * static_cast<double>(statistics.count),
            static_cast<double>(all));
    }
    static std::uint64_t instructions_of(const PathEntry& e) { return e.instructions(); }
    bool operator==(const PathEntry&) const = default;

    static constexpr auto fields() {
        return std::tuple(BlocksField<PathEntry, Place>(&PathEntry::blocks),
                          model::derived_field<model::Json<std::uint64_t>>(
                              "instructions", &PathEntry::instructions_of),
                          model::count_field(&PathEntry::statistics));
    }
};

template <class Place>
struct PathList : model::Hotlist<PathEntry<Place>> {
    static constexpr std::string_view section_key = "paths";
    static constexpr auto fields() { return PathList::fields_with(); }
    bool operator==(const PathList&) const = default;
};

using PathHotlist = model::Found<PathList>;
using PathSection = model::SectionOf<PathList>;

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::PathList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::PathList>;
