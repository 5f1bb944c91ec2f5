// Units on their way to a file and back: what in their code depends on where it is, and where the
// guest's code is, is written anew. Exits are connected as those of any unit.

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "emu/translator/kept/kept_units.h"
#include "emu/translator/translator.h"

namespace shadowprof::emu::translator {

bool Translator::may_be_kept(const Unit& unit) const {
    return !unit.compares && !unit.names_itself;
}

namespace {

constexpr auto nowhere = KeptExit::nowhere;

struct Moves {
    std::uint64_t guest, unit, arena;  // from 0, or to it
};

// By how much a unit's code has to be changed that was elsewhere. Distances are cut to 32 bits;
// whether they fit is another question.
void move(std::span<std::uint8_t> code, std::span<const Relocation> relocations,
          const Moves& moves) {
    const auto add = [&]<typename Word>(std::size_t at, Word by) {
        Word word;
        std::memcpy(&word, &code[at], sizeof word);
        word += by;
        std::memcpy(&code[at], &word, sizeof word);
    };
    const auto add_to_halves = [&](std::size_t at, std::uint64_t by) {
        const auto low = at + Emitter::store_area_half_length - sizeof(std::uint32_t);
        const auto high = low + Emitter::store_area_half_length;
        std::uint32_t halves[2];
        std::memcpy(&halves[0], &code[low], sizeof halves[0]);
        std::memcpy(&halves[1], &code[high], sizeof halves[1]);
        const auto word = (std::uint64_t{halves[1]} << 32 | halves[0]) + by;
        halves[0] = static_cast<std::uint32_t>(word);
        halves[1] = static_cast<std::uint32_t>(word >> 32);
        std::memcpy(&code[low], &halves[0], sizeof halves[0]);
        std::memcpy(&code[high], &halves[1], sizeof halves[1]);
    };
    for (const auto relocation : relocations) {
        switch (static_cast<Refers>(relocation.refers)) {
            case Refers::guest:
                add(relocation.offset, moves.guest);
                break;
            case Refers::guest_negative:
                add(relocation.offset, -moves.guest);
                break;
            case Refers::guest_in_halves:
                add_to_halves(relocation.offset, moves.guest);
                break;
            case Refers::unit_in_halves:
                add_to_halves(relocation.offset, moves.unit);
                break;
            case Refers::guest_relative:
                add(relocation.offset, static_cast<std::uint32_t>(moves.guest - moves.unit));
                break;
            case Refers::fixed_code:
                add(relocation.offset, static_cast<std::uint32_t>(moves.arena - moves.unit));
                break;
            case Refers::guest_narrow:
                break;
        }
    }
}

constexpr std::int64_t reach = 0x7fff'ff00;

// Whether all distances to the guest's code and data fit that a unit has, whose code is still as if
// it were at 0, as the module is.
bool reaches_all(std::span<const std::uint8_t> code, std::span<const Relocation> relocations,
                 Address place, std::uint64_t bias) {
    return std::ranges::all_of(relocations, [&](Relocation relocation) {
        if (static_cast<Refers>(relocation.refers) != Refers::guest_relative) return true;
        std::uint32_t word;
        std::memcpy(&word, &code[relocation.offset], sizeof word);
        const auto behind = relocation.offset + std::uint32_t{sizeof word};
        const auto distance =
            static_cast<std::int64_t>(std::uint64_t{word + behind} + bias - (place.value + behind));
        return -reach < distance && distance < reach;
    });
}

// Whether that will be so: what is meant lies within 2 GB of the module's begin. The code is still
// as it is executed.
bool means_what_is_near(std::span<const std::uint8_t> code, std::span<const Relocation> relocations,
                        Address place, std::uint64_t bias) {
    return std::ranges::all_of(relocations, [&](Relocation relocation) {
        if (static_cast<Refers>(relocation.refers) == Refers::guest_narrow) return bias == 0;
        if (static_cast<Refers>(relocation.refers) != Refers::guest_relative) return true;
        std::int32_t word;
        std::memcpy(&word, &code[relocation.offset], sizeof word);
        const auto meant = static_cast<std::int64_t>(place.value + relocation.offset + sizeof word +
                                                     static_cast<std::uint64_t>(word) - bias);
        return 0 <= meant && meant < reach;
    });
}

}  // namespace

// Without what is changed when exits are connected. The program could have written over it since.
std::vector<std::uint8_t> Translator::code_as_written(const Unit& unit) const {
    const auto* const begin = arena_of(unit.place).at(unit.place);
    std::vector<std::uint8_t> code(begin, begin + unit.size);
    for (std::uint32_t n = 0; n < unit.exit_count; ++n)
        for (const auto* const place :
             {exits_[unit.first_exit + n].jump, exits_[unit.first_exit + n].id})
            if (place) std::fill_n(code.begin() + (place - begin), sizeof(std::uint32_t), 0);
    return code;
}

KeptFacts Translator::ground_of(const CodeArena& arena) const {
    const auto place_of = [&](const std::uint8_t* code) {
        return static_cast<std::uint32_t>(code ? arena.place_of(code) - arena.range().begin : 0);
    };
    return {.tables = areas_place_,
            .leave = place_of(arena.fixed.leave),
            .call = place_of(arena.fixed.call),
            .kept = static_cast<std::uint32_t>(arena.end_of_kept() - arena.range().begin)};
}

// Units that are entered, and all of whose code is one module's.
std::unordered_map<trace::ModuleId, Translator::News> Translator::news() const {
    std::unordered_map<trace::ModuleId, News> all;
    for (std::uint32_t number = 0; number < units_.size(); ++number) {
        const auto& unit = units_[number];
        if (unit.was_kept || !may_be_kept(unit) || unit_at(unit.start(), unit.version) != number)
            continue;
        const auto& first = *unit.blocks.front();
        const auto is_beside_first = [&](const trace::Block* block) {
            return block->place.module == first.place.module &&
                   block->start - first.start == block->place.offset - first.place.offset;
        };
        const bool executed = was_executed(first.place);
        // In bursts much is executed that none has come to so far.
        if ((!executed && asking_ != Asking::in_bursts) ||
            !std::ranges::all_of(unit.blocks, is_beside_first))
            continue;
        auto& of_module = all[first.place.module];
        (executed ? of_module.executed : of_module.guessed).push_back(number);
    }
    return all;
}

void Translator::write(KeptUnitsWriter& out, const KeptCode::Module& module,
                       std::span<const std::uint32_t> units, bool executed) const {
    std::size_t all_code = 0, all_marks = 0;
    for (const auto number : units) {
        all_code += units_[number].size;
        all_marks += units_[number].marks.size();
    }
    out.make_room(all_code, all_marks);
    std::vector<std::uint32_t> blocks;
    std::vector<KeptExit> exits;
    for (const auto number : units) {
        const auto& unit = units_[number];
        const auto& first = *unit.blocks.front();
        if (first.start.value - first.place.offset != module.bias) continue;
        auto code = code_as_written(unit);
        if (checksum_of(code) != unit.checksum) continue;
        const auto& arena = arena_of(unit.place);
        const auto* const begin = arena.at(unit.place);
        const std::vector<Relocation> relocations{
            relocations_.begin() + unit.first_relocation,
            relocations_.begin() + unit.first_relocation + unit.relocation_count};
        if (!means_what_is_near(code, relocations, unit.place, module.bias)) continue;
        move(code, relocations, {-module.bias, -unit.place.value, -arena.range().begin.value});
        blocks.clear();
        for (const auto* const block : unit.blocks) blocks.push_back(out.add(*block, module.bias));
        const auto from_begin = [&](const std::uint8_t* place) {
            return place ? static_cast<std::uint32_t>(place - begin) : nowhere;
        };
        exits.clear();
        for (std::uint32_t n = 0; n < unit.exit_count; ++n) {
            const auto& exit = exits_[unit.first_exit + n];
            exits.push_back(
                {.target = exit.target.value - module.bias,
                 .jump = from_begin(exit.jump),
                 .id = from_begin(exit.id),
                 .blocks = static_cast<std::uint32_t>(segments_.at(exit.segment).size()),
                 .kind = exit.kind});
        }
        out.add({.offset = first.place.offset,
                 .place_in_line = static_cast<std::uint8_t>(unit.place.value % cache_line),
                 .version = unit.version,
                 .follows = unit.follows,
                 .was_executed = executed},
                {.code = code,
                 .marks = unit.marks,
                 .blocks = blocks,
                 .exits = exits,
                 .relocations = relocations});
    }
}

std::optional<std::uint32_t> Translator::take_kept(Address pc, Version version) {
    if (!kept_) return {};
    auto& arena = *arena_for(pc);
    const auto found = kept_->find(pc, version, ground_of(arena));
    if (!found) return {};
    const auto& [module, about] = *found;
    const auto parts = module->units->parts_of(*about);
    auto* begin = arena.begin();
    begin += (about->place_in_line - arena.place_of(begin).value) % cache_line;
    const auto place = arena.place_of(begin);
    if (arena.room() < about->size + cache_line + about->exits * most_bytes_asking_for_link ||
        !reaches_all(parts.code, parts.relocations, place, module->bias))
        return {};

    Unit unit;
    std::vector<trace::BlockId> ids;
    unit.blocks.reserve(parts.blocks.size());
    for (const auto number : parts.blocks) {
        const auto& kept = module->units->block(number);
        const Address start{kept.offset + module->bias};
        if (code_.may_change(start)) return {};
        const auto* block = code_.known_at(start);
        if (!block) block = &code_.know(module->units->block_at(number, module->bias, module->id));
        unit.blocks.push_back(block);
        ids.push_back(block->id);
    }
    std::ranges::copy(parts.code, begin);
    move({begin, about->size}, parts.relocations,
         {module->bias, place.value, arena.range().begin.value});
    arena.commit(begin + about->size);
    unit.version = version;
    unit.place = place;
    unit.size = about->size;
    unit.marks.assign(parts.marks.begin(), parts.marks.end());
    unit.first_exit = static_cast<std::uint32_t>(exits_.size());
    unit.exit_count = about->exits;
    unit.follows = about->follows;
    unit.was_kept = true;
    if (unit.follows) followed_.insert(pc);

    std::vector<Exit> exits;
    for (const auto& from : parts.exits) {
        auto& exit = exits.emplace_back();
        exit.kind = from.kind;
        exit.target = {from.target + module->bias};
        exit.unit = static_cast<std::uint32_t>(units_.size());
        exit.segment = segments_.publish(std::span{ids}.first(from.blocks));
        if (from.id != nowhere) {
            exit.id = begin + from.id;
            std::memcpy(exit.id, &exit.segment, sizeof exit.segment);
        }
        if (from.jump == nowhere) continue;
        exit.jump = begin + from.jump;
        const auto number = unit.first_exit + static_cast<std::uint32_t>(exits.size()) - 1;
        Emitter::join(exit.jump, code_that_asks_for_link(arena, number, exit.target));
    }
    return enter(std::move(unit), exits, {});
}

}  // namespace shadowprof::emu::translator
