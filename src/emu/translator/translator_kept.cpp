// What is translated, written for a later run and restored there. Code contains addresses of the
// guest's code and of its own memory, numbers of segments, blocks, units and exits: all of these
// are the same again.
//
// The tables of indirect branches are made anew, so that they lead only to what was restored.

#include "emu/translator/translator.h"

namespace shadowprof::emu::translator {

namespace {

constexpr std::uint64_t nowhere = ~std::uint64_t{0};

struct KeptUnit {
    Address place;
    std::uint32_t blocks, marks, size, first_exit, exit_count;
    Version version;
    bool is_left_out;
};

struct KeptExit {
    Address target;
    std::uint64_t jump;  // where it is in the cache; or nowhere
    trace::SegmentId segment;
    std::uint32_t unit;
    ExitKind kind;
};

struct KeptFarJump {
    Address from, to, place;
};

struct Findable {
    Address pc;
    std::uint64_t version;
};

}  // namespace

bool Translator::leads_to_changing_code(const Exit& exit) const {
    if (!exit.jump || units_[exit.unit].compares) return false;
    const auto known = unit_at(exit.target, units_[exit.unit].version);
    return known && units_[*known].compares;
}

bool Translator::write(SectionWriter& out) const {
    const auto place_of = [&](const std::uint8_t* code) -> std::uint64_t {
        for (const auto& arena : arenas_) {
            const auto place = arena.place_of(code);
            if (code && arena.range().contains(place)) return place.value;
        }
        return nowhere;
    };
    std::vector<std::uint32_t> segments;
    std::vector<trace::BlockId> of_segments;
    for (std::uint32_t n = 0; n < segments_.size(); ++n) {
        const auto blocks = segments_.at(trace::SegmentId{n});
        segments.push_back(static_cast<std::uint32_t>(blocks.size()));
        of_segments.insert(of_segments.end(), blocks.begin(), blocks.end());
    }
    out.keep(std::move(segments));
    out.keep(std::move(of_segments));

    std::vector<AddressRange> places;
    for (const auto& arena : arenas_) places.push_back({arena.end_of_kept(), arena.range().end});
    out.keep(std::move(places));
    for (const auto& arena : arenas_) {
        const auto contents = arena.contents();
        out.add(contents.in_a_row);
        out.add(contents.aside);
        out.add(std::span{arena.units});
    }

    std::vector<KeptUnit> units;
    std::vector<trace::BlockId> of_units;
    std::vector<std::uint8_t> marks;
    for (const auto& unit : units_) {
        units.push_back({.place = unit.place,
                         .blocks = static_cast<std::uint32_t>(unit.blocks.size()),
                         .marks = static_cast<std::uint32_t>(unit.marks.size()),
                         .size = unit.size,
                         .first_exit = unit.first_exit,
                         .exit_count = unit.exit_count,
                         .version = unit.version,
                         .is_left_out = unit.compares || unit.blocks.empty()});
        for (const auto* block : unit.blocks) of_units.push_back(block->id);
        marks.insert(marks.end(), unit.marks.begin(), unit.marks.end());
    }
    out.keep(std::move(units));
    out.keep(std::move(of_units));
    out.keep(std::move(marks));

    std::vector<KeptExit> exits;
    for (const auto& exit : exits_) {
        if (leads_to_changing_code(exit)) return false;
        exits.push_back({exit.target, place_of(exit.jump), exit.segment, exit.unit, exit.kind});
    }
    out.keep(std::move(exits));

    std::vector<KeptFarJump> far_jumps;
    for (const auto& [way, code] : far_jumps_)
        if (code) far_jumps.push_back({way.first, way.second, {place_of(code)}});
    out.keep(std::move(far_jumps));
    out.keep(std::vector<Address>{followed_.begin(), followed_.end()});
    std::vector<Findable> findable;
    findable_.for_each([&](std::uint64_t start, const std::uint8_t* jump) {
        if (jump) findable.push_back({{start / version_count}, start % version_count});
    });
    out.keep(std::move(findable));
    return true;
}

bool Translator::restore(SectionReader& in) {
    const auto segments = in.take<std::uint32_t>();
    auto of_segments = in.take<trace::BlockId>();
    const auto places = in.take<AddressRange>();
    bool fits = places.size() == arenas_.size();
    for (std::size_t n = 0; fits && n < arenas_.size(); ++n) {
        auto& arena = arenas_[n];
        const auto in_a_row = in.take<std::uint8_t>(), aside = in.take<std::uint8_t>();
        const auto units = in.take<std::uint32_t>();
        fits = places[n] == AddressRange{arena.end_of_kept(), arena.range().end} &&
               arena.restore(in_a_row, aside);
        arena.units.assign(units.begin(), units.end());
    }
    const auto units = in.take<KeptUnit>();
    auto of_units = in.take<trace::BlockId>();
    auto marks = in.take<std::uint8_t>();
    const auto exits = in.take<KeptExit>();
    const auto far_jumps = in.take<KeptFarJump>();
    const auto followed = in.take<Address>();
    const auto findable = in.take<Findable>();
    if (!fits || !in.is_sound()) {
        forget_everything();
        return false;
    }
    segments_.make_room_for(segments.size());
    by_start_.make_room_for(units.size());
    chains_.make_room_for(findable.size());
    findable_.make_room_for(findable.size());
    for (const auto size : segments) {
        segments_.publish(of_segments.first(size));
        of_segments = of_segments.subspan(size);
    }
    std::vector<bool> is_left_out;
    for (const auto& kept : units) {
        auto& unit = units_.emplace_back();
        unit.version = kept.version;
        unit.place = kept.place;
        unit.size = kept.size;
        unit.first_exit = kept.first_exit;
        unit.exit_count = kept.exit_count;
        is_left_out.push_back(kept.is_left_out);
        if (!kept.is_left_out) {
            for (const auto id : of_units.first(kept.blocks))
                unit.blocks.push_back(&code_.block(id));
            unit.marks.assign(marks.begin(), marks.begin() + kept.marks);
            know(static_cast<std::uint32_t>(units_.size()) - 1);
        }
        of_units = of_units.subspan(kept.blocks);
        marks = marks.subspan(kept.marks);
    }
    for (auto& arena : arenas_)
        std::erase_if(arena.units, [&](std::uint32_t unit) { return is_left_out[unit]; });
    for (const auto& kept : exits) {
        auto& exit = exits_.emplace_back();
        exit.kind = kept.kind;
        exit.segment = kept.segment;
        exit.target = kept.target;
        exit.unit = kept.unit;
        if (kept.jump == nowhere || is_left_out[kept.unit]) continue;
        exit.jump = arena_of({kept.jump}).at({kept.jump});
        const auto version = units_[exit.unit].version;
        if (unit_at(exit.target, version)) continue;
        auto& last = waiting_[key_of(exit.target, version)];
        exit.waits_too = std::exchange(last.value, static_cast<std::uint32_t>(exits_.size()) - 1);
    }
    for (const auto& jump : far_jumps)
        far_jumps_[{jump.from, jump.to}] = arena_of(jump.place).at(jump.place);
    followed_.insert(followed.begin(), followed.end());
    for (const auto& known : findable)
        if (const auto unit = unit_at(known.pc, static_cast<Version>(known.version)))
            make_findable(*unit);
    statistics_.units = units_.size();
    return true;
}

}  // namespace shadowprof::emu::translator
