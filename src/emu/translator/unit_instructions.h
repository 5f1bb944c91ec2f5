// Writes the guest's instructions other than branches. Most are copied as they are; those that use
// r15, gs or a rip-relative operand, and those that move all flags, are written anew.
#pragma once

#include "emu/translator/unit_writer.h"

namespace shadowprof::emu::translator {

class InstructionWriter {
  public:
    explicit InstructionWriter(UnitWriter& writer) : w_(writer), a_(writer.emitter()) {}

    void write(const decoder::Instruction& instruction);
    // The same, with its constant as the guest's code has it whenever it is executed.
    void write_with_constant_at(const decoder::Instruction& instruction,
                                decoder::ConstantField constant);

  private:
    void write_popf(const decoder::Instruction& instruction);
    // A test before the instruction has said that it cannot be executed in the cache.
    void leave_if_nonzero(const decoder::Instruction& instruction);
    void write_popfq(const decoder::Instruction& instruction);
    void write_pushfq(const decoder::Instruction& instruction);
    // Its memory operand is at the address in a borrowed register, which is given back.
    void write_with_memory_at(const decoder::Instruction& instruction, HostRegister borrowed);

    UnitWriter& w_;
    Emitter& a_;
};

// Whether an instruction would disturb or show gs, which is ours, and cannot be rewritten.
bool touches_gs(const decoder::Instruction& instruction);

}  // namespace shadowprof::emu::translator
