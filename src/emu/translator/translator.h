// The code cache of one address space: which of the guest's code is translated, where, and how its
// pieces are connected.
//
// It writes into memory that the target executes, and never stops the target to do so: code is
// written before the jump or the table entry that makes it reachable, and these are changed in one
// store. Nothing is taken back, except by forget_everything(), when no thread is inside.
//
// Indirect branches jump through a table indexed by the low 16 bits of their target, to the first
// of a chain of checks; each compares the whole target with the one it knows, without touching
// flags:
//
//     mov   rdx, -known         (a later one in the chain: the former known - known)
//     lea   rcx, [rcx + rdx]
//     jrcxz hit
//     jmp   [next]
//   hit:
//     mov   rdx, gs:[rdx]
//     mov   rcx, gs:[rcx]
//     jmp   unit
//
// The last one restores the target and leaves the cache.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/flat_map.h"
#include "emu/common/guest_code.h"
#include "emu/common/known_code.h"
#include "emu/translator/code_ahead.h"
#include "emu/translator/kept/kept_code.h"
#include "emu/translator/unit_compiler.h"

namespace shadowprof::emu::translator {

class Translator : private UnitDirectory {
  public:
    // `tables`: the lookup tables as we see them; `tables_place`: as the target does. `known` and
    // `kept` may be null.
    Translator(GuestCode& code, trace::SegmentTable& segments, LookupTables& tables,
               std::uint32_t tables_place, Asking asking, KnownCode* known = nullptr,
               KeptCode* kept = nullptr);

    // Arenas are used in this order of preference where more than one reaches.
    void add_arena(std::uint8_t* ours, Address place, std::size_t size,
                   std::span<const AddressRange> shared = {});

    // Where the code for the guest's `pc` is entered; nothing if there is no code, or an arena is
    // full: then forget_everything() helps.
    std::optional<Address> entry(Address pc, Version version);
    // A thread of a burst is, or was, there.
    void expect(Address pc, Version version);
    // Translates one unit of what is expected, or known from an earlier run, while nobody asks for
    // any. False: nothing is left, or more would leave little room.
    bool work_ahead();
    bool is_full() const { return is_full_; }
    bool is_empty() const { return units_.empty(); }

    // Whether a thread can have asked this, so that `exit` is the number of what it says.
    bool is_possible(const ThreadArea& asking) const;
    // A thread left the cache by this exit, and is about to enter again.
    std::optional<Address> link(std::uint32_t exit);
    // The same after an indirect branch, which will find its target next time.
    std::optional<Address> find(Address pc, Version version);
    // The same because the code at `pc` is not what was translated.
    void renew(Address pc, Version version);

    // One unit is to follow the way that a thread went through these segments, from the first one's
    // first block on, through as many rounds of loops as there is room for. False: nothing was
    // done, because it has been done already, or is of no use.
    bool follow(std::span<const trace::SegmentId> executed);
    bool is_translated(Address pc, Version version) const {
        return unit_at(pc, version).has_value();
    }

    // Code that decrements the word at `counter`, executes this instruction, and goes on after it
    // in the guest's own code: the target of a jump that replaces the instruction. When the counter
    // is zero it traps instead; then all registers except rip are the guest's. Uses the word at
    // `scratch`; both words are below 2 GB. Nothing if no arena is near.
    std::optional<Address> count_down(const decoder::Instruction& instruction,
                                      std::uint32_t counter, std::uint32_t scratch);

    // No thread is in the cache.
    void forget_everything();

    // The numbers of units that later runs, or other processes, can use and do not have, by module
    // (kept/translator_kept.cpp).
    struct News {
        std::vector<std::uint32_t> executed, guessed;
    };
    std::unordered_map<trace::ModuleId, News> news() const;
    bool was_executed(const trace::Location& place) const {
        return !known_ || known_->may_have_been_executed(place);
    }
    void write(KeptUnitsWriter& out, const KeptCode::Module& module,
               std::span<const std::uint32_t> units, bool executed) const;

    // What is at an address in the cache.
    struct Position {
        const Unit* unit = nullptr;
        Mark mark;
        bool at_entry = false;
    };
    std::optional<Position> locate(Address in_cache) const;
    bool is_in_cache(Address address) const;
    std::deque<CodeArena>& arenas() { return arenas_; }
    Address way_out(std::uint32_t area) const { return arenas_.front().fixed.way_out(area); }
    Address go_native() const { return arenas_.front().fixed.go_native; }
    Address go_on() const { return arenas_.front().fixed.go_on; }
    Address ask_behind_call() const { return arenas_.front().fixed.ask_behind_call; }
    // The fixed code that a thread stopped here is in.
    const FixedCode* fixed_code_at(Address address) const;
    // Whether a thread that is stopped in a system call here has left the cache with a request.
    bool is_behind_leave(Address address) const;
    // The exit by which a thread that is stopped in a system call, just before this address, left.
    const Exit* system_call_behind(Address in_cache) const;

    // Whether code in this range was translated.
    bool has_code_in(AddressRange range) const;
    const Unit& unit(std::uint32_t number) const { return units_[number]; }

    struct Statistics {
        std::uint64_t units = 0, bytes = 0, resets = 0, links = 0, finds = 0, followed = 0;
    };
    const Statistics& statistics() const { return statistics_; }

  private:
    trace::SegmentId segment_of(std::span<const trace::BlockId> blocks) override {
        return segments_.publish(blocks);
    }
    const trace::Block* block_at(Address at) override {
        return code_.may_change(at) ? nullptr : code_.block_at(at);
    }
    bool may_be_written(Address at) override { return code_.may_be_written(at); }

    // An address of the guest and a version: no code is where the address's high bits would matter.
    static std::uint64_t key_of(Address pc, Version version) {
        return pc.value * version_count + static_cast<std::size_t>(version);
    }
    // A unit or an exit.
    struct Number {
        static constexpr std::uint32_t none = ~std::uint32_t{0};
        std::uint32_t value = none;
    };

    // The end of a chain of checks.
    struct Check {
        Address known;
        std::uint8_t* next = nullptr;  // where its jump to the next one goes
    };

    std::optional<std::uint32_t> translate(Address pc, Version version);
    std::optional<std::uint32_t> asked_for(Address pc, Version version);
    bool go_on_as_known(std::uint32_t number);
    void look_ahead();
    bool work_on_known();
    bool work_on_expected(unsigned deepest);
    std::optional<std::uint32_t> compile(Address pc, Version version);
    bool translate_next();
    void is_likely(Address pc, Version version, bool is_returned_to);
    std::optional<std::uint32_t> add_unit(std::span<const trace::Block* const> blocks,
                                          Version version);
    std::uint32_t enter(Unit unit, std::span<const Exit> exits,
                        std::span<const Relocation> relocations);
    std::optional<std::uint32_t> take_kept(Address pc, Version version);
    bool may_be_kept(const Unit& unit) const;
    std::vector<std::uint8_t> code_as_written(const Unit& unit) const;
    KeptFacts ground_of(const CodeArena& arena) const;
    std::optional<std::uint32_t> unit_at(Address pc, Version version) const;
    void know(std::uint32_t unit);
    bool renew_if_changed(Address pc, Version version);
    bool make_findable(std::uint32_t number);
    bool add_check(std::uint32_t number);
    void replace(std::uint32_t old, std::uint32_t by);
    std::span<const trace::Block* const> choose_blocks(Address pc, Version version);
    void connect(std::uint32_t exit);
    void nothing_can_be_found();
    CodeArena* arena_for(Address pc);
    const CodeArena& arena_of(Address place) const;
    CodeArena& arena_of(Address place) {
        return const_cast<CodeArena&>(std::as_const(*this).arena_of(place));
    }
    const std::uint8_t* far_jump(CodeArena& from, Address to);
    std::uint64_t& table_entry(Address pc, Version version);

    GuestCode& code_;
    trace::SegmentTable& segments_;
    KnownCode* known_;
    KeptCode* kept_;
    LookupTables& tables_;
    Asking asking_;
    std::uint32_t areas_place_, exchange_place_;
    UnitCompiler compiler_;
    std::deque<CodeArena> arenas_;
    bool is_full_ = false;

    std::deque<Unit> units_;
    std::deque<Exit> exits_;
    std::deque<Relocation> relocations_;
    FlatMap<Number> by_start_;         // units, by key_of()
    FlatMap<Check> chains_;            // by version and low bits
    FlatMap<std::uint8_t*> findable_;  // their checks' jumps, by key_of()
    std::unordered_set<Address> followed_;
    // By the arena they are in and where they lead.
    std::map<std::pair<Address, Address>, const std::uint8_t*> far_jumps_;
    // Of code that has changed: the units of its versions, by key_of(). Each tries the next one;
    // the first is the one that is entered.
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> versions_;
    // Code that was found changed, and what was next.
    std::unordered_map<Address, Address> renewed_after_;
    Address last_renewed_;
    // Exits that lead to code that is not translated yet, by key_of() it: the last one, which knows
    // the one before.
    FlatMap<Number> waiting_;
    CodeAhead ahead_;
    std::size_t guesses_left_ = tuning::guesses_at_first;
    unsigned depth_ = 0;                       // of the unit that is being compiled
    std::vector<const trace::Block*> chosen_;  // blocks for the next unit
    std::map<std::pair<Address, std::uint32_t>, Address> counting_;  // by instruction and counter
    std::unordered_set<std::uint64_t> pages_;  // pages of the guest that were translated
    Statistics statistics_;
};

}  // namespace shadowprof::emu::translator
