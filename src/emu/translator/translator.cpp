#include "emu/translator/translator.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "base/error.h"
#include "base/sections.h"
#include "emu/tuning.h"

namespace shadowprof::emu::translator {

namespace {

using trace::BlockExit;

constexpr std::size_t room_for_check = 128;

}  // namespace

Translator::Translator(GuestCode& code, trace::SegmentTable& segments, LookupTables& tables,
                       std::uint32_t tables_place, Asking asking, KnownCode* known, KeptCode* kept)
    : code_(code),
      segments_(segments),
      known_(known),
      kept_(kept),
      tables_(tables),
      asking_(asking),
      areas_place_(tables_place + static_cast<std::uint32_t>(areas_at)),
      exchange_place_(tables_place + static_cast<std::uint32_t>(exchange_at)),
      compiler_(*this, tables_place) {}

void Translator::add_arena(std::uint8_t* ours, Address place, std::size_t size,
                           std::span<const AddressRange> shared) {
    arenas_.emplace_back(ours, place, size);
    write_fixed_code(arenas_.back(), asking_, areas_place_, exchange_place_, shared);
    if (arenas_.size() == 1) nothing_can_be_found();
}

void Translator::nothing_can_be_found() {
    const auto& arena = arenas_.front();
    tables_.clear(arena.place_of(arena.fixed.find));
    tables_.use(Version::lean);
}

const CodeArena& Translator::arena_of(Address place) const {
    const auto found = std::find_if(arenas_.begin(), arenas_.end(), [&](const CodeArena& arena) {
        return arena.range().contains(place);
    });
    SHADOWPROF_ASSERT(found != arenas_.end(), "no place in the cache");
    return *found;
}

CodeArena* Translator::arena_for(Address pc) {
    for (auto& arena : arenas_)
        if (arena.reaches(pc)) return &arena;
    return &arenas_.front();
}

std::optional<Address> Translator::entry(Address pc, Version version) {
    const auto number = translate(pc, version);
    if (!number) return {};
    return units_[*number].place;
}

// Code that is translated brings along the code that it leads to, as far as that is known, so that
// threads seldom have to ask.
std::optional<std::uint32_t> Translator::translate(Address pc, Version version) {
    if (const auto known = unit_at(pc, version)) return known;
    depth_ = 0;
    const auto number = compile(pc, version);
    if (!number) return {};
    // Between bursts there is time; whoever waits now asks for less than would be guessed.
    if (asking_ == Asking::in_bursts) {
        if (known_) known_->go_on_from(units_[*number].blocks.front()->place);
        guesses_left_ += tuning::guesses_for_a_miss;
        return number;
    }
    if (!go_on_as_known(*number)) look_ahead();
    ahead_.clear();
    return number;
}

// A thread that runs where others ran before is given a lead. Otherwise it would catch up with us
// again at once, and ask for each unit just when that is being translated.
std::optional<std::uint32_t> Translator::asked_for(Address pc, Version version) {
    const auto known = unit_at(pc, version);
    if (!known) return translate(pc, version);
    if (asking_ != Asking::in_bursts) go_on_as_known(*known);
    return known;
}

// False: it is not known how, or there is little room.
bool Translator::go_on_as_known(std::uint32_t number) {
    const auto& unit = units_[number];
    if (!known_ || unit.version != Version::lean || !known_->go_on_from(unit.blocks.front()->place))
        return false;
    std::size_t done = 0;
    while (done < tuning::known_ahead && work_ahead()) ++done;
    return done > 0;
}

void Translator::look_ahead() {
    for (std::size_t n = 0; n < tuning::look_ahead && !ahead_.is_empty(); ++n) translate_next();
}

// Where threads are comes first, then what earlier runs executed, and then what may be executed.
bool Translator::work_ahead() {
    constexpr unsigned where_threads_are = 1;
    const bool expects = asking_ == Asking::in_bursts;
    if (expects && work_on_expected(where_threads_are)) return true;
    if (known_ && code_.may_be_read_ahead() && work_on_known()) return true;
    if (!expects || guesses_left_ == 0) return false;
    --guesses_left_;
    return work_on_expected(tuning::deepest_ahead);
}

bool Translator::work_on_expected(unsigned deepest) {
    while (ahead_.nearest() <= deepest && !is_full_)
        if (translate_next()) return true;
    return false;
}

// What a file says is checked as if it were the program's: only code is translated.
bool Translator::work_on_known() {
    constexpr std::size_t most_looks = 256;
    for (std::size_t n = 0; n < most_looks; ++n) {
        const auto maps = code_.maps();
        const auto next = known_->next(maps);
        if (!next) return false;
        auto number = unit_at(next->at, Version::lean);
        const bool is_new = !number;
        if (is_new) {
            const auto* const mapping = maps->mapping_at(next->at);
            if (!mapping || !mapping->executable || code_.may_change(next->at)) continue;
            if (arena_for(next->at)->is_half_full()) return false;
            depth_ = tuning::deepest_ahead + 1;
            number = compile(next->at, Version::lean);
        }
        if (number && next->is_found) make_findable(*number);
        if (is_new) return true;
    }
    return true;
}

void Translator::expect(Address pc, Version version) {
    // Nobody waits in a window, which ends where code is missing.
    if (version != Version::lean) guesses_left_ += tuning::guesses_for_a_window;
    // Threads may come to it by a jump that is looked up, or return to it.
    constexpr bool is_returned_to = true;
    if (const auto known = unit_at(pc, version))
        make_findable(*known);
    else if (version == Version::lean)
        ahead_.add({pc, version, is_returned_to});
    else  // for a window, which is short
        ahead_.add({pc, version, is_returned_to, tuning::deepest_ahead - tuning::ahead_in_window},
                   1);
}

bool Translator::translate_next() {
    const auto next = ahead_.take();
    if (!next || unit_at(next->pc, next->version) || code_.may_change(next->pc)) return false;
    depth_ = next->depth;
    const auto number = compile(next->pc, next->version);
    if (number && next->is_returned_to) make_findable(*number);
    return number.has_value();
}

void Translator::is_likely(Address pc, Version version, bool is_returned_to) {
    const auto depth = is_returned_to ? depth_ : depth_ + 1;
    if (depth <= tuning::deepest_ahead) ahead_.add({pc, version, is_returned_to, depth});
}

std::optional<std::uint32_t> Translator::unit_at(Address pc, Version version) const {
    const auto* const known = by_start_.find(key_of(pc, version));
    if (!known || known->value == Number::none) return {};
    return known->value;
}

std::span<const trace::Block* const> Translator::choose_blocks(Address pc, Version version) {
    auto& blocks = chosen_;
    blocks.clear();
    const bool may_change = code_.may_change(pc);
    std::size_t instructions = 0, values = 0;
    while (blocks.size() < tuning::most_blocks_in_unit) {
        const auto* block = code_.block_at(pc);
        const bool is_there = std::find(blocks.begin(), blocks.end(), block) != blocks.end();
        if (!block || is_there) break;
        instructions += block->instructions.size();
        values += version == Version::values ? block->slots.size() : block->arguments();
        if (version == Version::accesses) values += block->accesses.size();
        if (!blocks.empty() &&
            (instructions > tuning::most_instructions_in_unit || values > most_values_in_unit / 4))
            break;
        blocks.push_back(block);
        // A unit notices only at its entry that its code changed.
        if (may_change) break;
        const auto& last = block->last();
        if (block->exit == BlockExit::conditional || block->exit == BlockExit::length)
            pc = last.end();
        else if (block->exit == BlockExit::jump && last.target > last.address)
            pc = last.target;
        else
            break;
        if (code_.may_change(pc)) break;
    }
    return blocks;
}

std::optional<std::uint32_t> Translator::compile(Address pc, Version version) {
    auto number = take_kept(pc, version);
    if (!number) number = add_unit(choose_blocks(pc, version), version);
    if (!number) return {};
    const auto& last = *units_[*number].blocks.back();
    if (last.exit == BlockExit::call || last.exit == BlockExit::indirect_call)
        is_likely(last.end(), version, true);
    return number;
}

std::optional<std::uint32_t> Translator::add_unit(std::span<const trace::Block* const> blocks,
                                                  Version version) {
    if (blocks.empty()) return {};
    const auto pc = blocks.front()->start;
    const auto number = static_cast<std::uint32_t>(units_.size());
    auto& arena = *arena_for(pc);
    auto result = compiler_.compile(arena, blocks, version, code_.may_change(pc), number,
                                    static_cast<std::uint32_t>(exits_.size()));
    if (!result) {
        is_full_ = true;
        return {};
    }
    return enter(std::move(result->unit), result->exits, result->relocations);
}

std::uint32_t Translator::enter(Unit added, std::span<const Exit> exits,
                                std::span<const Relocation> relocations) {
    const auto number = static_cast<std::uint32_t>(units_.size());
    added.first_relocation = static_cast<std::uint32_t>(relocations_.size());
    if (kept_ && !added.was_kept && may_be_kept(added)) {
        added.relocation_count = static_cast<std::uint32_t>(relocations.size());
        relocations_.insert(relocations_.end(), relocations.begin(), relocations.end());
    }
    units_.push_back(std::move(added));
    const auto& unit = units_.back();
    ++statistics_.units;
    statistics_.bytes += unit.size;
    know(number);
    tables_.use(unit.version);
    arena_of(unit.place).units.push_back(number);
    exits_.insert(exits_.end(), exits.begin(), exits.end());
    if (unit.relocation_count > 0) units_.back().checksum = checksum_of(code_as_written(unit));
    for (std::uint32_t exit = 0; exit < unit.exit_count; ++exit)
        if (exits_[unit.first_exit + exit].jump) connect(unit.first_exit + exit);
    const auto key = key_of(unit.start(), unit.version);
    if (!waiting_.find(key)) return number;
    const auto last = std::exchange(waiting_[key], {});
    for (auto exit = last.value; exit != Number::none; exit = exits_[exit].waits_too) connect(exit);
    return number;
}

void Translator::know(std::uint32_t number) {
    const auto& unit = units_[number];
    // A version of code that changes is entered by way of the first one.
    auto& start = by_start_[key_of(unit.start(), unit.version)];
    if (start.value == Number::none || !unit.compares) start = {number};
    for (const auto* block : unit.blocks) {
        pages_.insert(page_number(block->start));
        pages_.insert(page_number(block->last().address));
    }
}

// Connects an exit to its target, now or as soon as the target is translated.
void Translator::connect(std::uint32_t index) {
    auto& exit = exits_[index];
    const auto& from = units_[exit.unit];
    const auto known = unit_at(exit.target, from.version);
    if (!known) {
        auto& last = waiting_[key_of(exit.target, from.version)];
        exit.waits_too = std::exchange(last.value, index);
        if (!from.compares) is_likely(exit.target, from.version, false);
        return;
    }
    const auto place = units_[*known].place;
    auto& arena = arena_of(from.place);
    if (arena.range().contains(place))
        set_jump(exit.jump, arena.at(place));
    else if (const auto* const jump = far_jump(arena, place))
        set_jump(exit.jump, jump);
    else
        return;
    ++statistics_.links;
}

// A jump to another arena, which no displacement reaches. Nothing if there is no room.
const std::uint8_t* Translator::far_jump(CodeArena& from, Address to) {
    auto& jump = far_jumps_[{from.range().begin, to}];
    if (jump) return jump;
    if (from.room() < room_for_check) {
        is_full_ = true;
        return nullptr;
    }
    Emitter a{from.begin(), from.end()};
    jump = a.position();
    a.jump_through_memory_behind(0);
    a.data(to.value);
    from.commit(a.position());
    return jump;
}

bool Translator::is_possible(const ThreadArea& asking) const {
    switch (asking.request) {
        case Request::look:
        case Request::find:
        case Request::call:
        case Request::nothing:
        case Request::called:
            return true;
        case Request::link:
            return asking.exit < exits_.size();
        case Request::changed:
        case Request::unsupported:
            return asking.exit < units_.size();
    }
    return false;
}

std::optional<Address> Translator::link(std::uint32_t exit) {
    SHADOWPROF_ASSERT(exit < exits_.size(), std::to_string(exit));
    const auto number = asked_for(exits_[exit].target, units_[exits_[exit].unit].version);
    if (!number) return {};
    return units_[*number].place;
}

std::uint64_t& Translator::table_entry(Address pc, Version version) {
    return tables_.use(version)[pc.value % table_entries];
}

std::optional<Address> Translator::find(Address pc, Version version) {
    const auto number = asked_for(pc, version);
    if (!number) return {};
    statistics_.finds += make_findable(*number);
    return units_[*number].place;
}

bool Translator::make_findable(std::uint32_t number) {
    const auto& unit = units_[number];
    if (known_ && unit.version == Version::lean) known_->was_found(unit.blocks.front()->place);
    return add_check(number);
}

// Adds a check for the unit to the end of a chain, unless there is one or no room for it.
bool Translator::add_check(std::uint32_t number) {
    const auto& unit = units_[number];
    const auto pc = unit.start();
    const auto version = unit.version;
    if (findable_.find(key_of(pc, version))) return false;
    auto* arena = arena_for(pc);
    if (arena->room() < room_for_check) {
        is_full_ = true;
        return false;
    }
    const auto chain = static_cast<std::uint64_t>(version) << 16 | (pc.value & 0xffff);
    const auto* const last = chains_.find(chain);

    auto* begin = arena->begin();
    begin += -reinterpret_cast<std::uintptr_t>(begin) & 7;
    // First comes the word that says what comes next, then the check.
    auto* const next = begin;
    Emitter a{begin + 8, arena->end()};
    const auto* const check = a.position();
    const auto former = last ? last->known.value : 0;
    // The constant has its full length, so that the layout of the code does not depend on it.
    const auto move_in_full = [&](HostRegister reg, std::uint64_t value) {
        a.raw(0x48, 0xb8 | reg);
        a.data(value);
    };
    move_in_full(decoder::rdx, former - pc.value);
    a.lea(decoder::rcx, decoder::rcx, decoder::rdx, 1, 0);
    constexpr std::int8_t length_of_jump_through_memory = 6;
    a.jump_if_rcx_is_zero(length_of_jump_through_memory);
    a.jump_through_memory_behind(
        static_cast<std::int32_t>(next - (a.position() + length_of_jump_through_memory)));
    a.load_area(decoder::rdx, offsetof(ThreadArea, rdx));
    a.load_area(decoder::rcx, offsetof(ThreadArea, rcx));
    auto* const jump = a.patchable_jump();
    Emitter::join(jump, arena->at(unit.place));
    const auto* const not_found = a.position();
    move_in_full(decoder::rdx, pc.value);
    a.lea(decoder::rcx, decoder::rcx, decoder::rdx, 1, 0);
    a.jump_to(arena->fixed.find);
    arena->commit(a.position());
    set_word(next, arena->place_of(not_found).value);

    const auto place = arena->place_of(check).value;
    if (last)
        set_word(last->next, place);
    else
        __atomic_store_n(&table_entry(pc, version), place, __ATOMIC_RELEASE);
    chains_[chain] = {pc, next};
    findable_[key_of(pc, version)] = jump;
    return true;
}

void Translator::forget_everything() {
    units_.clear();
    exits_.clear();
    relocations_.clear();
    by_start_.clear();
    chains_.clear();
    findable_.clear();
    followed_.clear();
    versions_.clear();
    renewed_after_.clear();
    waiting_.clear();
    far_jumps_.clear();
    ahead_.clear();
    pages_.clear();
    is_full_ = false;
    ++statistics_.resets;
    counting_.clear();
    for (auto& arena : arenas_) arena.forget();
    nothing_can_be_found();
}

bool Translator::has_code_in(AddressRange range) const {
    const auto first = page_number(range.begin), last = page_number(range.end - 1);
    if (last - first > pages_.size())
        return std::any_of(pages_.begin(), pages_.end(),
                           [&](std::uint64_t page) { return first <= page && page <= last; });
    for (auto page = first; page <= last; ++page)
        if (pages_.count(page)) return true;
    return false;
}

bool Translator::is_in_cache(Address address) const {
    return std::any_of(arenas_.begin(), arenas_.end(),
                       [&](const CodeArena& arena) { return arena.range().contains(address); });
}

const FixedCode* Translator::fixed_code_at(Address address) const {
    const auto found = std::find_if(arenas_.begin(), arenas_.end(), [&](const CodeArena& arena) {
        return arena.range().begin <= address && address < arena.end_of_kept();
    });
    return found == arenas_.end() ? nullptr : &found->fixed;
}

bool Translator::is_behind_leave(Address address) const {
    return std::any_of(arenas_.begin(), arenas_.end(),
                       [&](const CodeArena& arena) { return arena.fixed.after_leave == address; });
}

std::optional<Translator::Position> Translator::locate(Address in_cache) const {
    for (const auto& arena : arenas_) {
        if (!arena.range().contains(in_cache)) continue;
        const auto behind = std::upper_bound(
            arena.units.begin(), arena.units.end(), in_cache,
            [&](Address wanted, std::uint32_t unit) { return wanted < units_[unit].place; });
        if (behind == arena.units.begin()) return {};
        const auto& unit = units_[*std::prev(behind)];
        const auto offset = in_cache - unit.place;
        if (offset >= unit.size) return {};
        return Position{&unit, mark_at(unit.marks, offset), offset == 0};
    }
    return {};
}

const Exit* Translator::system_call_behind(Address in_cache) const {
    const auto position = locate(in_cache - 1);
    if (!position) return nullptr;
    const auto& unit = *position->unit;
    const auto& last = exits_[unit.first_exit + unit.exit_count - 1];
    const bool is_system_call = unit.exit_count > 0 && last.kind == ExitKind::system_call;
    return is_system_call ? &last : nullptr;
}

}  // namespace shadowprof::emu::translator
