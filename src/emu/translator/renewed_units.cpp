// Units that take the place of others: of code that has changed, and those that follow the ways
// that threads were seen to go.
#include <algorithm>
#include <cstring>

#include "emu/translator/translator.h"
#include "emu/tuning.h"

namespace shadowprof::emu::translator {

using trace::BlockExit;

void Translator::renew(Address pc, Version version) {
    renew_if_changed(pc, version);
    renewed_after_[last_renewed_] = pc;
    // Who writes much code anew goes through it as the time before.
    auto next = renewed_after_.find(pc);
    for (std::size_t n = 0; n < tuning::renewed_ahead; ++n) {
        if (next == renewed_after_.end() || !renew_if_changed(next->second, version)) break;
        pc = next->second;
        next = renewed_after_.find(pc);
    }
    last_renewed_ = pc;
}

// False: the thread can go on with what there is, or nothing can be done.
bool Translator::renew_if_changed(Address pc, Version version) {
    const auto known = unit_at(pc, version);
    if (!known || !units_[*known].compares || is_full_) return false;
    auto& versions = versions_[key_of(pc, version)];
    if (versions.empty()) versions.push_back(*known);
    const auto* const block = code_.block_at(pc);
    const auto is_of_block = [&](std::uint32_t number) {
        return units_[number].blocks.front() == block;
    };
    if (!block || std::ranges::any_of(versions, is_of_block)) return false;
    const bool begins_anew =
        versions.size() == tuning::most_versions_of_code || block->varying_constants != 0;
    if (begins_anew) by_start_[key_of(pc, version)] = {};
    const auto number = add_unit({&block, 1}, version);
    if (!number) return false;
    if (begins_anew) {
        replace(*known, *number);
        versions.clear();
    } else {
        const auto& last = units_[versions.back()];
        set_jump(arena_for(pc)->at(last.place + last.jump_if_changed),
                 arena_for(pc)->at(units_[*number].place));
    }
    versions.push_back(*number);
    return true;
}

// Whatever leads to the old unit leads on to the new one: a jump replaces the old entry's first
// instruction, which is longer than the jump. A thread that is about to execute the entry's second
// instruction is not disturbed.
void Translator::replace(std::uint32_t old, std::uint32_t by) {
    const auto& unit = units_[by];
    auto* arena = arena_for(unit.start());
    const auto* const target = arena->at(unit.place);
    auto* const entry = arena->at(units_[old].place);
    const auto distance = static_cast<std::uint32_t>(target - (entry + Emitter::jump_length));
    std::uint64_t word = 0;
    std::memcpy(&word, entry, sizeof word);
    word = (word & ~std::uint64_t{0xffffffffff}) | 0xe9 | std::uint64_t{distance} << 8;
    set_word(entry, word);
    if (const auto* const check = findable_.find(key_of(unit.start(), unit.version)))
        set_jump(*check, target);
}

namespace {

// A unit that follows this way takes it for granted that direct branches are right.
bool can_lead_to(const trace::Block& block, Address next) {
    const auto& last = block.last();
    switch (block.exit) {
        case BlockExit::conditional:
            return next == last.target || next == last.end();
        case BlockExit::jump:
        case BlockExit::call:
            return next == last.target;
        case BlockExit::length:
            return next == last.end();
        case BlockExit::indirect_jump:
        case BlockExit::indirect_call:
        case BlockExit::return_:
            return true;  // that is looked at as it is executed
        case BlockExit::system_call:
        case BlockExit::trap:
        case BlockExit::cut:
            return false;
    }
    return false;
}

}  // namespace

bool Translator::follow(std::span<const trace::SegmentId> executed) {
    std::vector<const trace::Block*> blocks;
    std::size_t instructions = 0;
    bool is_over = false;
    for (const auto segment : executed) {
        for (const auto id : segments_.at(segment)) {
            const auto* const block = &code_.block(id);
            instructions += block->instructions.size();
            is_over = blocks.size() == tuning::most_blocks_followed ||
                      instructions > tuning::most_instructions_followed ||
                      code_.may_change(block->start) || code_.block_at(block->start) != block ||
                      (!blocks.empty() && !can_lead_to(*blocks.back(), block->start));
            if (is_over) break;
            blocks.push_back(block);
        }
        if (is_over) break;
    }
    if (blocks.size() < 2 || is_full_) return false;
    const auto old = unit_at(blocks.front()->start, Version::lean);
    if (!old || !followed_.insert(blocks.front()->start).second) return false;
    if (blocks == units_[*old].blocks) return false;
    const auto number = add_unit(blocks, Version::lean);
    if (!number) return false;
    units_[*number].follows = true;
    replace(*old, *number);
    ++statistics_.followed;
    return true;
}

}  // namespace shadowprof::emu::translator
