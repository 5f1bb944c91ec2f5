// Bytes to instructions, and instructions to text.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "decoder/instruction.h"

namespace shadowprof::decoder {

inline constexpr std::size_t longest_instruction = 15;

// Nothing if the bytes are no instruction in 64-bit mode, or are cut off.
std::optional<Instruction> decode(std::span<const std::byte> bytes, Address at);

// Intel syntax; branch targets absolute.
std::string text(const Instruction& instruction);

// The name of a register as the assembler writes it ("eax", "xmm3", "k1").
std::string name(Register reg);

}  // namespace shadowprof::decoder
