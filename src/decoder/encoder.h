// The same instruction with another address, so that a host can carry out a guest's instruction on
// memory that lies elsewhere. Everything but the address keeps its encoding, including whatever was
// not understood about the instruction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "decoder/instruction.h"

namespace shadowprof::decoder {

// The encoding of one instruction.
struct Bytes {
    std::array<std::byte, 15> storage{};
    std::uint8_t length = 0;
    std::uint8_t displacement = 0;  // of moved_to(): where its 32 bits are

    std::span<const std::byte> view() const { return {storage.data(), length}; }
};

// The instruction with its explicit memory operand replaced by [base_register], without index,
// displacement, segment or address-size prefix. Nothing if it has no such operand (mov with a
// 64-bit absolute address has none in this sense), if the operand is not an access or is a
// gather's, or if there is no such encoding: ah, ch, dh and bh cannot be used together with r8 to
// r15, and no instruction has more than 15 bytes.
std::optional<Bytes> with_memory_at(const Instruction& instruction, std::uint8_t base_register);

// For MemoryUse::gather: [base_register + index * scale], the index and scale unchanged, without
// displacement or segment. Nothing for 32-bit addresses: the sum is cut there, not the base.
std::optional<Bytes> with_gather_base(const Instruction& instruction, std::uint8_t base_register);

// An instruction with a rip-relative memory operand as it must be encoded at another place to mean
// the same address. Nothing if that is out of reach, or if there is no such operand.
std::optional<Bytes> moved_to(const Instruction& instruction, Address place);

// Where an instruction's constant is encoded, which is sign-extended to the size of its operation.
struct ConstantField {
    std::uint8_t offset = 0, size = 0;
};
// Nothing of instructions that with_constant_in() does not know.
std::optional<ConstantField> constant_field(const Instruction& instruction);

// The instruction with its constant, sign-extended to 64 bits, in one of rax … rdi, which it does
// not use otherwise. Known are mov, push, test and the arithmetic that has a form without constant;
// not with an address that is rip-relative or has a segment, nor with ah, ch, dh or bh.
std::optional<Bytes> with_constant_in(const Instruction& instruction, std::uint8_t reg);

// A bit for every general register that is read, written or part of an address, hidden or not. The
// others are free while the instruction runs.
std::uint16_t general_registers_used(const Instruction& instruction);

}  // namespace shadowprof::decoder
