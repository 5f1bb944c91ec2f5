// A unit of code while it is being written: the emitter, the marks, the code that is put aside for
// the unit's end, and what r15 holds at each place. It knows nothing of what the guest's
// instructions mean; see UnitCompiler for who does.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "decoder/encoder.h"
#include "emu/common/inline_function.h"
#include "emu/translator/code_arena.h"
#include "emu/translator/emitter.h"
#include "emu/translator/relocation.h"
#include "emu/translator/unit.h"

namespace shadowprof::emu::translator {

class UnitWriter {
  public:
    using LateCode = InlineFunction<192>;

    // False: the arena has no room. `number` and `first_exit` as in UnitCompiler::compile().
    bool begin(CodeArena& arena, std::span<const trace::Block* const> blocks, Version version,
               bool compares, std::uint32_t number, std::uint32_t first_exit);
    // Writes the late code. The unit's exits are for the caller to count.
    Unit finish();

    Emitter& emitter() { return a_; }
    const Unit& unit() const { return unit_; }
    const FixedCode& fixed_code() const { return arena_->fixed; }
    CodeArena& arena() const { return *arena_; }
    const decoder::Instruction& at(std::size_t block, std::size_t index) const {
        return unit_.blocks[block]->instructions[index];
    }
    // The block that the unit goes on with; nullptr after the last one.
    const trace::Block* next_of(std::size_t block) const {
        return block + 1 < unit_.blocks.size() ? unit_.blocks[block + 1] : nullptr;
    }
    Address here() const { return arena_->place_of(a_.position()); }

    // What follows carries out this instruction.
    void move_to(std::size_t block, std::size_t instruction);
    // States how this place in the code relates to the guest: see Mark.
    void mark(std::uint8_t borrowed = Mark::none);
    // Code for the end of the unit, out of the way of what usually runs. It is written in the state
    // that the main line has now.
    void late(const LateCode& code) { late_.push_back({state_, position_, value_offset_, code}); }
    // Nothing can follow in the main line.
    void leave() { left_ = true; }
    bool has_left() const { return left_; }

    // r15 holds the stream pointer, or the guest's r15, or may be used for anything.
    void to_stream();
    void to_guest();
    void free_stream_register();
    // The guest's instruction wrote r15, while it held the guest's.
    void stream_register_was_changed() {
        state_.holds = StreamRegister::changed;
        mark();
    }
    // Saves a register that the instruction has nothing to do with, and that goes with every
    // encoding, in the thread's area.
    HostRegister borrow(const decoder::Instruction& instruction);
    void give_back(HostRegister reg);
    // reg = the operand's effective address, with the guest's gs base if wanted. fs is left to the
    // instruction that uses the address.
    void address(HostRegister reg, const decoder::Instruction& instruction,
                 const decoder::Operand& operand, bool with_gs);

    // Values are stored after the place of the exit's number, in order. r15 is the stream pointer.
    void store_value(HostRegister reg);
    std::int32_t next_value() { return std::exchange(value_offset_, value_offset_ + value_size); }
    // Writes the exit's segment, and moves the stream pointer behind what was written.
    void write_id(Exit& exit);

    // What says where the guest's code is, or where this is, is noted.
    void move_address(HostRegister reg, Address guest);
    void move_negative(HostRegister reg, Address guest);
    void store_pc(Address guest);
    void push_narrow(std::int32_t guest);
    void data(Address guest);
    void jump_to_fixed(const std::uint8_t* code);
    // A distance to something of the guest's was just written, `before` the end.
    void wrote_distance(std::size_t before) { refer(Refers::guest_relative, before); }
    std::span<const Relocation> relocations() const { return relocations_; }

    // Leaves the cache with a request, and goes on at the guest's `pc`.
    void ask(Request request, Address pc);
    // The thread stands at the unit's entry, in case that it goes on there by itself.
    void note_entry();
    // The same, before the instruction at `pc`, which is in this unit; it says in which one it is.
    void ask_within(Request request, Address pc);
    void leave_unsupported(const decoder::Instruction& instruction);
    // The same as ask_within() at the unit's entry, until another version of the code is known.
    void ask_or_try_next_version();

  private:
    static constexpr std::int32_t id_size = 4, value_size = 8;

    // What r15 holds, and whether the area's `stream` is up to date.
    struct StreamState {
        StreamRegister holds = StreamRegister::stream;
        bool saved = false;
    };
    using Position = std::pair<std::uint16_t, std::uint8_t>;  // block and instruction
    struct Late {
        StreamState state;
        Position position;
        std::int32_t value_offset;
        LateCode code;
    };

    void refer(Refers what, std::size_t before);
    void move_noted(HostRegister reg, std::uint64_t value, Refers what);

    CodeArena* arena_ = nullptr;
    Emitter a_;
    Unit unit_;
    std::uint8_t* begin_ = nullptr;
    std::uint32_t number_ = 0;
    std::vector<Mark> marks_;
    std::vector<Relocation> relocations_;
    std::vector<Late> late_;
    StreamState state_;
    Position position_;
    std::int32_t value_offset_ = id_size;  // of the next value, from the stream pointer
    bool left_ = false;
};

// Writes code outside of the unit that asks for an exit to be connected to its target. Out there
// the stream pointer is in r15 and everything else is the guest's.
inline constexpr std::size_t most_bytes_asking_for_link =
    3 * Emitter::store_area_half_length + Emitter::jump_length;
const std::uint8_t* code_that_asks_for_link(CodeArena& arena, std::uint32_t exit, Address target);

// Where in the thread's area a borrowed register is put.
std::size_t slot_for(HostRegister borrowed);
inline constexpr std::size_t second_temp = offsetof(ThreadArea, temp) + 8;
inline constexpr std::size_t third_temp = offsetof(ThreadArea, temp) + 16;
inline constexpr std::uint8_t fs_prefix = 0x64;

const decoder::Operand* explicit_memory(const decoder::Instruction& instruction);
Address rip_target(const decoder::Instruction& instruction, const decoder::Operand& operand);
bool mentions(const decoder::Operand& operand, std::uint8_t general);
bool uses_stream_register(const decoder::Instruction& instruction);
// A bit string's address is cut to 32 bits only after the distance of the bit was added, so no
// register can hold it before that.
bool is_cut_behind_address(const decoder::Instruction& instruction,
                           const decoder::Operand& operand);

}  // namespace shadowprof::emu::translator
