// One case: a few instructions and a state, run by the interpreter, by the CPU, and from the
// translator's code cache, and compared: all that is left behind with the CPU's, and the two Traces
// with one another.
//
// Half of the sequences are one instruction, others several, and some have branches in their midst:
// forward ones to any later instruction, direct, through a register, through memory or as a return,
// so that blocks overlap and units have several blocks and exits. Every sequence ends in a jump
// back to us, or in whatever its last instruction leads to.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arena.h"
#include "base/random.h"
#include "emu/common/guest_code.h"
#include "emu/interpreter/interpreter.h"
#include "forms.h"
#include "native.h"
#include "translated.h"

namespace shadowprof::differential {

struct FormStatistics {
    std::uint64_t executed = 0;  // cases, on a CPU that has the instruction
    std::uint64_t illegal = 0;   // the CPU does not know it
    std::uint64_t faulted = 0;
    std::uint64_t mismatches = 0;
    std::uint64_t undefined_flags = 0;  // only flags differed that are undefined
    std::uint64_t excepted = 0;
    std::uint64_t unsupported = 0;
    std::uint64_t untranslated = 0;

    FormStatistics& operator+=(const FormStatistics& other) {
        executed += other.executed;
        illegal += other.illegal;
        faulted += other.faulted;
        mismatches += other.mismatches;
        undefined_flags += other.undefined_flags;
        excepted += other.excepted;
        unsupported += other.unsupported;
        untranslated += other.untranslated;
        return *this;
    }
};

// For people.
std::string general_name(std::size_t number);

class Differential {
  public:
    Differential(const FormTable& forms, std::uint64_t seed);
    ~Differential();

    // Runs one sequence of instructions with several states.
    void run_sequence();
    void run(std::uint64_t cases);

    std::uint64_t cases() const { return cases_; }
    std::uint64_t mismatches() const { return mismatches_; }
    // Cases that differed once, and not when they were run again (see exceptions.h).
    std::uint64_t agreed_later() const { return agreed_later_; }
    const std::vector<FormStatistics>& statistics() const { return statistics_; }
    // The first few, for people.
    const std::vector<std::string>& reports() const { return reports_; }

    // From how many cases a unit was entered again, because it led to code not translated yet, or
    // asked for something.
    std::uint64_t requests() const { return requests_; }
    // Units that were made to go where a case went.
    std::uint64_t followed() const { return followed_ + followed_units(); }
    std::uint64_t instructions() const { return instructions_; }

  private:
    struct Step {
        std::size_t form;
        decoder::Instruction instruction;
    };
    // A branch in the midst of a sequence, and where the instruction is that knows the distance.
    struct Inner {
        std::size_t branch;
        std::size_t names_target;
    };
    class Blocks;
    // Code has a slot of its own and lies in its middle: branches lead out of it, to int3, on both
    // sides.
    static constexpr std::size_t slot_size = 1024, code_in_slot = 160, beyond_code = 800;
    // The code region, seen as a program's: by turns as a file's, and as what may change; with its
    // translation near, or where it does not reach the memory for the operands.
    struct World {
        World(bool looks_writable, TranslatedCode::Place place);
        bool changes;
        trace::BlockTable blocks;
        trace::ModuleTable modules;
        emu::GuestCode code;
        TranslatedCode translated;
    };

    void begin_world();
    std::uint64_t followed_units() const;
    void take_slot();
    std::size_t pick_form(const std::vector<std::size_t>& extensions);
    bool make_sequence();
    // Append to the steps; false if nothing came of it.
    bool add_step(const std::vector<std::size_t>& extensions, bool may_branch);
    bool add_inner_branch();
    bool add_bytes(std::initializer_list<unsigned> bytes);
    bool direct_inner_branches();
    Address next_place() const;
    void make_state();
    void place_operand(const decoder::Operand& operand);
    Address operand_address(unsigned bits);
    void run_state();
    bool faults_in_any_order() const;
    std::string differences(const emu::Stop& stop, const NativeEnd& native);
    std::string translated_differences(const NativeEnd& native, const TranslatedCode::End& end,
                                       TranslatedCode::Version version);
    std::string trace_differences(const TranslatedCode::End& end, TranslatedCode::Version version);
    void compare(const emu::GuestState& mine, const std::vector<std::byte>& memory,
                 std::uint64_t ignored_flags, std::string& differences) const;
    bool shows_x87_pointers() const;
    std::uint64_t flag_difference() const;
    std::uint64_t undefined_flags() const;
    void count(const emu::Stop& stop, const NativeEnd& native, const std::string& differences);
    // The step that begins there; the last one if none does.
    // In one of the states: see exceptions.h.
    bool may_save_other_components() const;
    bool has_unusable_stack() const;
    bool has_lost_nested_task() const;
    std::size_t step_at(Address at) const;

    const FormTable& forms_;
    Random random_;
    std::vector<std::vector<std::size_t>> by_extension_;
    std::vector<std::size_t> direct_branches_;  // forms
    std::map<std::string, std::size_t> by_name_;
    std::vector<FormStatistics> statistics_;
    Arena arena_;
    std::unique_ptr<World> world_;
    std::unique_ptr<Blocks> blocks_;
    emu::MemoryView view_;
    emu::Interpreter interpreter_;
    NativeCode code_;  // its signal handlers go before the interpreter's

    std::vector<Step> steps_;
    std::vector<Inner> inner_;
    std::size_t sequences_in_world_ = 0;
    Address slot_ = NativeCode::begin;
    Address start_, end_;
    emu::GuestState initial_, interpreted_, native_, translated_;
    std::vector<std::byte> initial_arena_, interpreted_arena_, native_arena_, translated_arena_;
    std::vector<trace::BlockId> interpreted_blocks_;
    std::vector<std::uint64_t> interpreted_values_;
    std::uint64_t cases_ = 0, mismatches_ = 0, agreed_later_ = 0, requests_ = 0, instructions_ = 0;
    std::uint64_t followed_ = 0;
    std::vector<std::string> reports_;
};

}  // namespace shadowprof::differential
