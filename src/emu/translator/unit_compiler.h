// Turns a run of blocks into the code of a unit.
//
// Code of the guest keeps its registers, its flags, its stack and its addresses: most instructions
// are copied as they are. Written anew are
//   - branches: those that leave the unit write down by which exit, and jump to the unit they lead
//     to, or look it up; calls push the address that the guest would have pushed;
//   - instructions that use r15, which we have taken: before the first of them the guest's r15 is
//     fetched from the thread's area, and put back when the unit is left;
//   - rip-relative operands, which mean another address at another place.
//
// For a loop that ends in `jne`:
//
//     test  r15d, look_bits     the entry: is there still room?
//     jnz   ask
//     …                         the guest's instructions
//     jne   taken
//     mov   dword [r15], 8      left by falling through
//     lea   r15, [r15 + 4]
//     jmp   next unit
//   taken:
//     mov   dword [r15], 7
//     lea   r15, [r15 + 4]
//     jmp   entry
//
// An indirect branch jumps through the table entry of its target's low 16 bits, to code that checks
// the whole target and enters the unit (see Translator). No flag is touched on the way, for who
// can tell whether the target wants them.
//
// In the versions for values and for accesses each captured value is stored behind the place where
// the exit's number will be, at a distance known in advance.
//
// In the version that times loads each of them counts down to the next one to be timed:
//
//     mov   gs:[rcx'], rcx
//     mov   rcx, gs:[loads_left]
//     lea   rcx, [rcx - 1]
//     mov   gs:[loads_left], rcx
//     jrcxz timed
//   back:
//     mov   rcx, gs:[rcx']
//     …                         the guest's instruction
//   timed:
//     …                         rax and rdx to the area, the load's address to rcx
//     lfence                    what was begun before is over
//     rdtsc
//     mov   gs:[temp], rax
//     lfence                    the clock was read before the load is begun
//     movzx edx, byte [rcx]
//     lfence
//     rdtsc
//     …                         a LoadReading is filled in; the next one says how many loads to
//                               wait
//     jmp   back
//
// It is a load of its own that is timed, of the same place at the same time: the guest's then finds
// what it brought.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "decoder/encoder.h"
#include "emu/interpreter/inline_function.h"
#include "emu/translator/code_arena.h"
#include "emu/translator/emitter.h"
#include "emu/translator/unit.h"

namespace shadowprof::emu::translator {

// What the compiler asks about the rest.
class UnitDirectory {
  public:
    virtual ~UnitDirectory() = default;
    // A number for the blocks executed up to an exit.
    virtual trace::SegmentId segment_of(std::span<const trace::BlockId> blocks) = 0;
    // The block that begins there, for looking ahead; nullptr if there is none, or may be another
    // one later.
    virtual const trace::Block* block_at(Address at) = 0;
};

class UnitCompiler {
  public:
    UnitCompiler(UnitDirectory& directory, std::uint32_t tables);

    struct Result {
        Unit unit;
        std::vector<Exit> exits;
    };
    // Of a unit that `compares`, all blocks' bytes are compared on entry. `number` is the unit's,
    // `first_exit` that of its first exit. Nothing if the arena has no room.
    std::optional<Result> compile(CodeArena& arena, std::vector<const trace::Block*> blocks,
                                  Version version, bool compares, std::uint32_t number,
                                  std::uint32_t first_exit);

  private:
    using Instruction = decoder::Instruction;
    using Operand = decoder::Operand;
    using LateCode = InlineFunction<192>;

    // What r15 holds, and whether the area's `stream` is where to write next.
    struct StreamState {
        StreamRegister holds = StreamRegister::stream;
        bool saved = false;
    };

    void write_entry();
    void compare_code(const LateCode& restore_flags);
    void write_block(std::size_t index);
    void write_instruction(std::size_t block, std::size_t index);
    void write_plain(const Instruction& instruction);
    void write_popfq(const Instruction& instruction);
    void write_pushfq(const Instruction& instruction);
    // … its memory operand at the address in a borrowed register, which is given back.
    void write_with_memory_at(const Instruction& instruction, HostRegister borrowed);
    void write_branch(std::size_t block);
    void push_return_address(const Instruction& call);
    void write_conditional(std::size_t block);
    void write_counted(const Instruction& branch, bool taken_goes_on, std::size_t exit);
    // Of an indirect branch or a return, to rcx.
    void write_target(const Instruction& branch);
    void load_target(const Instruction& branch);
    void expect_target(Address expected);
    void leave_directly(Address target);
    void leave_indirectly();
    void look_up();
    void leave_with_system_call(Address next);
    void leave_unsupported(const Instruction& instruction);
    void jump_to_exit(std::size_t exit);
    std::size_t add_exit(ExitKind kind, Address target);
    void write_id(std::size_t exit);
    void ask(Request request, Address pc);

    void to_stream();
    void to_guest();
    void free_stream_register();
    void mark(std::uint8_t borrowed = Mark::none);
    HostRegister borrow(const Instruction& instruction);
    void give_back(HostRegister reg);

    // reg = the operand's effective address.
    void address(HostRegister reg, const Instruction& instruction, const Operand& operand,
                 bool with_segment);
    const std::vector<trace::Slot>& slots_of(std::size_t block) const;
    void capture_before(std::size_t block, std::size_t index);
    void time_loads(std::size_t block, std::size_t index);
    void time_load(const Instruction& instruction, std::size_t block, std::size_t access);
    void capture_after(std::size_t block, std::size_t index);
    void capture_counter(std::size_t block, std::size_t index);
    void store_value(HostRegister reg);
    void store_general(std::uint8_t guest_register);

    bool flags_matter(Address at, unsigned depth) const;
    bool flags_matter_at_entry() const;
    void late(const LateCode& code) { late_.push_back({state_, position_, value_offset_, code}); }

    // The block that the unit goes on with.
    const trace::Block* next_of(std::size_t block) const {
        return block + 1 < unit_.blocks.size() ? unit_.blocks[block + 1] : nullptr;
    }
    const Instruction& at(std::size_t block, std::size_t index) const {
        return unit_.blocks[block]->instructions[index];
    }
    Address here() const { return arena_->place_of(a_.position()); }

    UnitDirectory& directory_;
    std::uint32_t tables_;
    bool has_avx_;
    bool has_wide_masks_;

    CodeArena* arena_ = nullptr;
    Emitter a_;
    Unit unit_;
    std::vector<Exit> exits_;
    std::vector<Mark> marks_;
    std::uint8_t* begin_ = nullptr;
    std::uint32_t number_ = 0;
    StreamState state_;
    std::pair<std::uint16_t, std::uint8_t> position_;  // block and instruction
    std::int32_t value_offset_ = 4;                    // of the next value, from the stream pointer
    std::size_t next_slot_ = 0;
    std::vector<trace::BlockId> executed_;
    struct Late {
        StreamState state;
        std::pair<std::uint16_t, std::uint8_t> position;
        std::int32_t value_offset;
        LateCode code;
    };
    std::vector<Late> late_;
    bool left_ = false;
};

}  // namespace shadowprof::emu::translator
