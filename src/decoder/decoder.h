// Bytes to instructions, and instructions to text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "decoder/instruction.h"

namespace shadowprof::decoder {

// Nothing if the bytes are not an instruction in 64-bit mode, or are cut off.
std::optional<Instruction> decode(std::span<const std::byte> bytes, Address at);

// Of the library that decodes, whose numbers are in what was decoded.
std::uint64_t library_version();

// The same operands, kept for good, once.
std::span<const Operand> shared(std::span<const Operand> operands);

// Intel syntax; branch targets and rip-relative addresses absolute, hexadecimal; conditions named
// as objdump names them (je, jae).
std::string text(const Instruction& instruction);

// Also of instructions whose Mnemonic is `other`: "vaddps".
std::string_view mnemonic_name(const Instruction& instruction);

// "BASE", "SSE2", "AVX512EVEX", …
std::string_view isa_extension_name(const Instruction& instruction);

// The name of a register as the assembler writes it ("eax", "xmm3", "k1").
std::string name(Register reg);

}  // namespace shadowprof::decoder
