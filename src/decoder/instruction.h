// decoder: what an instruction is: its operands and their roles, the registers and flags it reads
// and writes, its memory operands, where it may go next, its text, and its encoding with changed
// operands. The only room that includes Zydis. It knows bytes and addresses, no process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.h"
#include "decoder/mnemonic.h"

namespace shadowprof::decoder {

inline constexpr std::size_t longest_instruction = 15;

enum class RegisterKind : std::uint8_t {
    none,
    general,
    flags,
    instruction_pointer,
    segment,
    x87,
    mmx,
    vector,
    mask,
    x87_control,  // control, status and tag words
    mxcsr,
    other,  // tiles, bounds, xcr, ssp, control and debug registers
};

// The numbers the hardware encodes: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5, rsi 6, rdi 7, r8 …
// Registers of kind `other` have numbers of the decoder's own.
struct Register {
    RegisterKind kind = RegisterKind::none;
    std::uint8_t number = 0;
    bool high_byte = false;  // ah, ch, dh, bh: number is that of the whole register
    std::uint16_t bits = 0;

    constexpr bool operator==(const Register&) const = default;
    constexpr explicit operator bool() const { return kind != RegisterKind::none; }
    constexpr bool is_general(std::uint8_t n) const {
        return kind == RegisterKind::general && number == n;
    }
};

enum GeneralRegister : std::uint8_t {
    // clang-format off
    rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
    // clang-format on
};

enum class Segment : std::uint8_t { es, cs, ss, ds, fs, gs };

enum class MemoryUse : std::uint8_t {
    access,        // reads or writes memory
    address_only,  // lea, wide nops, prefetches: computes the address; nothing can fault
    gather,        // one access an element (vector index: gathers and scatters) or a row (tiles)
};

// The memory a push or pop uses is given with rsp as it is before the instruction: a push writes
// below that address. An explicit operand of pop is addressed with rsp as it is after the pop.
struct MemoryOperand {
    MemoryUse use = MemoryUse::access;
    Segment segment = Segment::ds;
    Register base;   // instruction_pointer: see is_rip_relative
    Register index;  // vector for gathers and scatters
    std::uint8_t scale = 1;
    std::uint8_t address_bits = 64;  // 32: the sum is cut to 32 bits before the segment is added
    std::int64_t displacement = 0;

    constexpr bool operator==(const MemoryOperand&) const = default;
    // To the end of the instruction, Instruction::end().
    bool is_rip_relative() const { return base.kind == RegisterKind::instruction_pointer; }
};

enum class OperandKind : std::uint8_t { none, reg, memory, immediate, far_pointer };

// Hidden operands are those that the text does not show: rsp of push, flags, rdx of mul.
enum class Visibility : std::uint8_t { explicit_, implicit, hidden };

enum class ElementType : std::uint8_t { other, integer, floating };

struct Operand {
    OperandKind kind = OperandKind::none;
    Visibility visibility = Visibility::explicit_;
    ElementType element_type = ElementType::other;
    bool reads : 1 = false;
    bool writes : 1 = false;
    // The write (or read) may not happen: cmov, masked vectors, cmpxchg.
    bool conditional : 1 = false;
    // The read may not happen: memory there need not be readable.
    bool conditional_read : 1 = false;
    bool is_write_mask : 1 = false;  // an EVEX mask register other than k0
    std::uint16_t bits = 0;
    std::uint16_t element_bits = 0;
    std::uint16_t elements = 0;
    Register reg;
    MemoryOperand memory;
    std::uint64_t immediate = 0;  // sign-extended; 0 of branches, which have a `target`

    constexpr bool operator==(const Operand&) const = default;
};

// Where control goes after an instruction.
enum class Flow : std::uint8_t {
    next,
    conditional,  // taken to `target`, or falls through (jcc, loop, jrcxz, xbegin)
    jump,
    indirect_jump,
    call,
    indirect_call,
    return_,
    system_call,  // syscall only
    trap,         // int n, int3, ud2, hlt, sysenter, far transfers, iret: no engine goes through
};

enum class Repeat : std::uint8_t { none, rep, repne };

// rflags bits
enum Flag : std::uint32_t {
    carry = 1u << 0,
    parity = 1u << 2,
    adjust = 1u << 4,
    zero = 1u << 6,
    sign = 1u << 7,
    direction = 1u << 10,
    overflow = 1u << 11,
};
inline constexpr std::uint32_t status_flags = carry | parity | adjust | zero | sign | overflow;

// A large program's blocks hold millions of these, so they are small, and those with the same
// operands share them.
struct Instruction {
    Address address;
    Address target;  // of direct branches
    const Operand* first_operand = nullptr;
    std::uint32_t flags_read = 0;
    std::uint32_t flags_written = 0;    // including set, cleared and undefined ones
    std::uint32_t flags_undefined = 0;  // subset of flags_written
    Mnemonic mnemonic = Mnemonic::other;
    std::uint16_t mnemonic_id = 0;  // the decoder library's; see mnemonic_name
    Flow flow = Flow::next;
    Repeat repeat = Repeat::none;  // only where it repeats (string instructions)
    bool lock : 1 = false;         // atomic, by prefix or by nature (xchg with memory)
    bool privileged : 1 = false;   // faults in a user's program
    bool flags_conditional : 1 =
        false;  // may leave flags_written as they were: shl by cl, rep cmps
    std::uint8_t length = 0;
    std::uint8_t operand_count = 0;
    std::uint8_t explicit_count = 0;  // explicit and implicit operands, as in the text, come first
    std::uint8_t scalar_bits = 0;     // of vector instructions on the lowest element only: its size
    std::uint8_t isa_extension_id = 0;
    std::array<std::byte, longest_instruction> bytes{};

    Address end() const { return address + length; }
    std::span<const std::byte> encoding() const { return {bytes.data(), length}; }
    std::span<const Operand> operands() const { return {first_operand, operand_count}; }
    std::span<const Operand> explicit_operands() const { return {first_operand, explicit_count}; }
    // They must live as long as the instruction: see shared().
    void set_operands(std::span<const Operand> list) {
        first_operand = list.data();
        operand_count = static_cast<std::uint8_t>(list.size());
    }
};
static_assert(sizeof(Instruction) == 64);

}  // namespace shadowprof::decoder
