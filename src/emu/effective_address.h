// Where an instruction's memory operand points, given the registers before it.
#pragma once

#include "decoder/instruction.h"
#include "ptrace/registers.h"

namespace shadowprof::emu {

inline Address effective_address(const decoder::Instruction& instruction,
                                 const decoder::MemoryOperand& memory,
                                 const ptrace::Registers& registers) {
    std::uint64_t address = static_cast<std::uint64_t>(memory.displacement);
    if (memory.base.kind == decoder::RegisterKind::instruction_pointer)
        address += instruction.end().value;
    else if (memory.base)
        address += registers.general(memory.base.number);
    if (memory.index) address += registers.general(memory.index.number) * memory.scale;
    if (memory.address_bits == 32) address &= 0xffffffffu;
    if (memory.segment == decoder::Segment::fs) address += registers.raw.fs_base;
    if (memory.segment == decoder::Segment::gs) address += registers.raw.gs_base;
    return {address};
}

}  // namespace shadowprof::emu
