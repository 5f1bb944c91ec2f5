// Writes branches and the unit's exits.
//
// A unit that is left writes down by which exit, and jumps to the unit that follows or looks it up:
// an indirect branch jumps through the table entry of its target's low 16 bits, to code that checks
// the whole target and enters the unit (see Translator). No flag is changed on the way, because the
// target may read them.
#pragma once

#include <span>
#include <vector>

#include "emu/translator/unit_instructions.h"
#include "emu/translator/unit_recording.h"
#include "emu/translator/unit_writer.h"

namespace shadowprof::emu::translator {

class UnitDirectory;

class FlowWriter {
  public:
    FlowWriter(UnitWriter& writer, InstructionWriter& instructions, RecordingWriter& recording,
               UnitDirectory& directory, std::uint32_t tables)
        : w_(writer),
          a_(writer.emitter()),
          instructions_(instructions),
          recording_(recording),
          directory_(directory),
          tables_(tables) {}

    void begin_unit();
    // What follows is executed after all blocks before it, and after this one's begin.
    void begin_block(trace::BlockId block) { executed_.push_back(block); }
    // The block's last instruction, and what follows it in the unit.
    void write_branch(std::size_t block);
    void leave_directly(Address target);
    // Until the next unit begins.
    std::span<const Exit> exits_of(std::uint32_t unit);

  private:
    using Instruction = decoder::Instruction;

    void push_return_address(const Instruction& call);
    void write_conditional(std::size_t block);
    void write_counted(const Instruction& branch, bool taken_goes_on, std::size_t exit);
    // Puts the target of an indirect branch or a return into rcx.
    void write_target(const Instruction& branch);
    void load_target(const Instruction& branch);
    void expect_target(Address expected);
    void leave_indirectly();
    void leave_with_system_call(Address next);
    void note_end_of_call();
    void look_up();
    void jump_to_exit(std::size_t exit);
    // Until then it asks to be connected.
    void jump_when_connected(std::size_t exit);
    std::size_t add_exit(ExitKind kind, Address target);

    UnitWriter& w_;
    Emitter& a_;
    InstructionWriter& instructions_;
    RecordingWriter& recording_;
    UnitDirectory& directory_;
    std::uint32_t tables_;
    std::vector<Exit> exits_;
    std::vector<trace::BlockId> executed_;
};

}  // namespace shadowprof::emu::translator
