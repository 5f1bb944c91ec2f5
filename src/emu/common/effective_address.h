// Where an instruction's memory operand points, given the registers before it: the effective
// address as the processor's manual defines it. Two are not what the operand alone says: pop
// addresses its destination with rsp as it is after the pop, and of bt and its like it is where the
// bit string begins, however far from there the bit is.
#pragma once

#include "decoder/instruction.h"
#include "ptrace/registers.h"

namespace shadowprof::emu {

inline std::uint64_t value_in_address(const ptrace::Registers& registers,
                                      const decoder::Register& reg) {
    const auto value = registers.general(reg.number);
    return reg.bits == 8 ? value & 0xff : value;  // al, of xlat
}

inline Address effective_address(const decoder::Instruction& instruction,
                                 const decoder::Operand& operand,
                                 const ptrace::Registers& registers) {
    const auto& memory = operand.memory;
    std::uint64_t address = static_cast<std::uint64_t>(memory.displacement);
    if (memory.is_rip_relative())
        address += instruction.end().value;
    else if (memory.base)
        address += value_in_address(registers, memory.base);
    if (memory.index) address += value_in_address(registers, memory.index) * memory.scale;
    if (instruction.mnemonic == decoder::Mnemonic::pop && memory.base.is_general(decoder::rsp) &&
        operand.visibility != decoder::Visibility::hidden)
        address += operand.bits / 8u;
    if (memory.address_bits == 32) address &= 0xffffffffu;
    if (memory.segment == decoder::Segment::fs) address += registers.raw.fs_base;
    if (memory.segment == decoder::Segment::gs) address += registers.raw.gs_base;
    return {address};
}

}  // namespace shadowprof::emu
