// What is translated, written for a later run and restored there, at the same addresses. Code also
// contains numbers of segments, which are others then. Exits are connected anew, and the tables of
// indirect branches made anew, for not everything is kept.

#include <cstring>

#include "emu/translator/translator.h"

namespace shadowprof::emu::translator {

namespace {

struct KeptArena {
    AddressRange range;
    Address end_of_kept, end;  // of the fixed code, and of what follows
};

struct KeptUnit {
    Address place;
    std::uint32_t size, blocks, marks, exits;
    Version version;
};

// Places are distances from the unit's begin.
struct KeptExit {
    Address target;
    std::uint32_t jump, id;
    std::uint32_t blocks;  // of its segment: the unit's first ones
    ExitKind kind;
};
constexpr std::uint32_t nowhere = ~std::uint32_t{0};

}  // namespace

Translator::Selection Translator::worth_keeping() const {
    Selection kept;
    for (std::uint32_t n = 0; n < units_.size(); ++n) {
        const auto& unit = units_[n];
        if (unit.compares || unit.names_itself ||
            (known_ && !known_->may_have_been_executed(unit.blocks.front()->place)))
            continue;
        kept.units.push_back(n);
        for (const auto* block : unit.blocks) {
            const auto number = static_cast<std::size_t>(block->id);
            if (number >= kept.blocks.size()) kept.blocks.resize(number + 1);
            kept.blocks[number] = true;
        }
    }
    return kept;
}

void Translator::write(SectionWriter& out, const Selection& kept) const {
    std::vector<std::uint32_t> number_among_kept;  // of a block
    std::uint32_t blocks = 0;
    for (const bool is_kept : kept.blocks) {
        number_among_kept.push_back(blocks);
        blocks += is_kept;
    }
    std::vector<KeptArena> arenas;
    for (const auto& arena : arenas_)
        arenas.push_back({arena.range(), arena.end_of_kept(), arena.place_of(arena.begin())});
    std::vector<KeptUnit> units;
    std::vector<std::uint32_t> of_units;
    std::vector<std::uint8_t> marks, code;
    std::vector<KeptExit> exits;
    for (const auto number : kept.units) {
        const auto& unit = units_[number];
        units.push_back({.place = unit.place,
                         .size = unit.size,
                         .blocks = static_cast<std::uint32_t>(unit.blocks.size()),
                         .marks = static_cast<std::uint32_t>(unit.marks.size()),
                         .exits = unit.exit_count,
                         .version = unit.version});
        for (const auto* block : unit.blocks)
            of_units.push_back(number_among_kept[static_cast<std::size_t>(block->id)]);
        marks.insert(marks.end(), unit.marks.begin(), unit.marks.end());
        const auto* const begin = arena_of(unit.place).at(unit.place);
        code.insert(code.end(), begin, begin + unit.size);
        const auto from_begin = [&](const std::uint8_t* place) {
            return place ? static_cast<std::uint32_t>(place - begin) : nowhere;
        };
        for (std::uint32_t n = 0; n < unit.exit_count; ++n) {
            const auto& exit = exits_[unit.first_exit + n];
            exits.push_back(
                {.target = exit.target,
                 .jump = from_begin(exit.jump),
                 .id = from_begin(exit.id),
                 .blocks = static_cast<std::uint32_t>(segments_.at(exit.segment).size()),
                 .kind = exit.kind});
        }
    }
    std::vector<std::uint64_t> findable;
    findable_.for_each([&](std::uint64_t key, const std::uint8_t* check) {
        if (check) findable.push_back(key);
    });
    out.keep(std::move(arenas));
    out.keep(std::move(units));
    out.keep(std::move(of_units));
    out.keep(std::move(marks));
    out.keep(std::move(code));
    out.keep(std::move(exits));
    out.keep(std::vector<Address>{followed_.begin(), followed_.end()});
    out.keep(std::move(findable));
}

bool Translator::restore(SectionReader& in, std::span<const trace::BlockId> blocks) {
    const auto arenas = in.take<KeptArena>();
    const auto units = in.take<KeptUnit>();
    auto of_units = in.take<std::uint32_t>();
    auto marks = in.take<std::uint8_t>();
    auto code = in.take<std::uint8_t>();
    auto exits = in.take<KeptExit>();
    const auto followed = in.take<Address>();
    const auto findable = in.take<std::uint64_t>();
    if (!in.is_sound() || arenas.size() != arenas_.size()) return false;
    for (std::size_t n = 0; n < arenas.size(); ++n)
        if (arenas[n].range != arenas_[n].range() ||
            arenas[n].end_of_kept != arenas_[n].end_of_kept())
            return false;

    for (std::size_t n = 0; n < arenas.size(); ++n) arenas_[n].commit(arenas_[n].at(arenas[n].end));
    by_start_.make_room_for(units.size());
    std::vector<trace::BlockId> ids;
    for (const auto& kept : units) {
        const auto number = static_cast<std::uint32_t>(units_.size());
        auto& unit = units_.emplace_back();
        unit.version = kept.version;
        unit.place = kept.place;
        unit.size = kept.size;
        unit.first_exit = static_cast<std::uint32_t>(exits_.size());
        unit.exit_count = kept.exits;
        unit.marks.assign(marks.begin(), marks.begin() + kept.marks);
        unit.blocks.reserve(kept.blocks);
        ids.clear();
        for (const auto block : of_units.first(kept.blocks)) {
            ids.push_back(blocks[block]);
            unit.blocks.push_back(&code_.block(ids.back()));
        }
        auto& arena = arena_of(unit.place);
        auto* const begin = arena.at(unit.place);
        std::memcpy(begin, code.data(), kept.size);
        arena.units.push_back(number);
        know(number);
        for (const auto& from : exits.first(kept.exits)) {
            auto& exit = exits_.emplace_back();
            exit.kind = from.kind;
            exit.target = from.target;
            exit.unit = number;
            exit.segment = segments_.publish(std::span{ids}.first(from.blocks));
            if (from.jump != nowhere) exit.jump = begin + from.jump;
            if (from.id == nowhere) continue;
            exit.id = begin + from.id;
            std::memcpy(exit.id, &exit.segment, sizeof exit.segment);
        }
        of_units = of_units.subspan(kept.blocks);
        marks = marks.subspan(kept.marks);
        code = code.subspan(kept.size);
        exits = exits.subspan(kept.exits);
    }
    for (std::uint32_t number = 0; number < exits_.size(); ++number) {
        const auto& exit = exits_[number];
        if (!exit.jump) continue;
        auto& arena = arena_of(units_[exit.unit].place);
        const auto to = unit_at(exit.target, units_[exit.unit].version);
        if (to && arena.range().contains(units_[*to].place)) {
            Emitter::join(exit.jump, arena.at(units_[*to].place));
            continue;
        }
        Emitter::join(exit.jump, code_that_asks_for_link(arena, number, exit.target));
        connect(number);
    }
    followed_.insert(followed.begin(), followed.end());
    chains_.make_room_for(findable.size());
    findable_.make_room_for(findable.size());
    for (const auto key : findable)
        if (const auto* const unit = by_start_.find(key)) add_check(unit->value);
    ahead_.clear();
    return true;
}

}  // namespace shadowprof::emu::translator
