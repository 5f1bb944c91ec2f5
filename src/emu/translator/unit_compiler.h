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
// The jobs are shared out: UnitWriter keeps the unit that is being written, InstructionWriter
// writes instructions, FlowWriter branches and exits, RecordingWriter what is recorded besides; the
// compiler writes the entry and runs through the blocks.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "emu/translator/unit_flow.h"
#include "emu/translator/unit_instructions.h"
#include "emu/translator/unit_recording.h"
#include "emu/translator/unit_writer.h"

namespace shadowprof::emu::translator {

// What the compiler asks about the rest.
class UnitDirectory {
  public:
    virtual ~UnitDirectory() = default;
    // A number for the blocks executed up to an exit.
    virtual trace::SegmentId segment_of(std::span<const trace::BlockId> blocks) = 0;
    // The block that begins there, for looking ahead; nullptr if there is none, or another one may
    // be there later.
    virtual const trace::Block* block_at(Address at) = 0;
    // Whether the program may write over this code while it executes it.
    virtual bool may_be_written(Address at) = 0;
};

class UnitCompiler {
  public:
    UnitCompiler(UnitDirectory& directory, std::uint32_t tables);
    UnitCompiler(const UnitCompiler&) = delete;
    UnitCompiler& operator=(const UnitCompiler&) = delete;

    struct Result {
        Unit unit;
        std::span<const Exit> exits;  // until the next unit
        std::span<const Relocation> relocations;
    };
    // A unit that `compares` has one block, whose bytes are compared on entry. If the program may
    // write over it, so are those that follow an instruction that writes memory, after it. `number`
    // is the unit's, `first_exit` that of its first exit. Nothing if the arena has no room.
    std::optional<Result> compile(CodeArena& arena, std::span<const trace::Block* const> blocks,
                                  Version version, bool compares, std::uint32_t number,
                                  std::uint32_t first_exit);

  private:
    using LateCode = UnitWriter::LateCode;

    bool flags_matter(Address at, unsigned depth) const;
    void write_entry();
    // All of it at the entry; further on, from this instruction to the next one that writes memory.
    void compare_code(std::size_t from);
    void save_flags();
    void restore_flags();
    void write_block(std::size_t index);
    void write_instruction(std::size_t block, std::size_t index);

    UnitDirectory& directory_;
    UnitWriter w_;
    Emitter& a_;
    InstructionWriter instructions_;
    RecordingWriter recording_;
    FlowWriter flow_;
    bool may_be_written_ = false;  // the unit's code
};

}  // namespace shadowprof::emu::translator
