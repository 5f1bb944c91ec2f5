// The bytes with which the host carries out a guest's instruction.
#pragma once

#include <optional>

#include "decoder/encoder.h"
#include "emu/common/host_assembler.h"

namespace shadowprof::emu {

bool is_legacy_prefix(unsigned byte);

struct X87Opcode {
    std::uint8_t first, second;  // the second is ModRM
    unsigned reg() const { return second >> 3 & 7u; }
    bool has_memory() const { return second < 0xc0; }
    // fldcw and fnclex change only which exceptions are pending.
    bool changes_exceptions() const;
};
// Nothing if it is not an x87 instruction.
std::optional<X87Opcode> x87_opcode(const decoder::Instruction& instruction);
// Whether the unit may remember where this instruction's operand was.
bool x87_remembers_operand(const decoder::Instruction& instruction);

// The same instruction with another register in place of an explicit operand rsp (or esp, sp, spl),
// because the host's stack pointer is in use. The register is one of rax … rdi. Nothing if rsp is
// not such an operand, or if the encoding cannot hold the other register.
std::optional<decoder::Instruction> without_stack_pointer(const decoder::Instruction& instruction,
                                                          HostRegister instead);

// The instruction with its memory operand, if there is one, at [base], and without a lock prefix:
// the view is private.
std::optional<decoder::Bytes> host_encoding(const decoder::Instruction& instruction,
                                            HostRegister base);

// Without segment and address-size prefixes: for instructions whose address no operand encodes.
decoder::Bytes without_address_prefixes(const decoder::Instruction& instruction);

bool has_explicit_stack_pointer(const decoder::Instruction& instruction);

}  // namespace shadowprof::emu
