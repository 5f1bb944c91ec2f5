// Writes the few host instructions that surround the guest's own ones in compiled code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "decoder/instruction.h"

namespace shadowprof::emu {

using HostRegister = std::uint8_t;  // numbers as the hardware encodes them
// The register's bit in a set of registers.
constexpr std::uint32_t bit(HostRegister reg) {
    return 1u << reg;
}

enum class Condition : std::uint8_t { o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g };
constexpr Condition operator!(Condition c) {
    return static_cast<Condition>(static_cast<std::uint8_t>(c) ^ 1);
}

class HostAssembler {
  public:
    HostAssembler() = default;
    HostAssembler(std::uint8_t* begin, std::uint8_t* end) : at_(begin), end_(end) {}

    std::uint8_t* position() const { return at_; }
    std::size_t room() const { return static_cast<std::size_t>(end_ - at_); }

    void bytes(std::span<const std::byte> code) {
        std::memcpy(at_, code.data(), code.size());
        at_ += code.size();
    }
    template <typename... B>
    void raw(B... b) {
        ((*at_++ = static_cast<std::uint8_t>(b)), ...);
    }

    // reg <-> [rsp + offset]
    void load(HostRegister reg, std::size_t offset) { core_operand(true, 0x8b, reg, offset); }
    void load32(HostRegister reg, std::size_t offset) { core_operand(false, 0x8b, reg, offset); }
    void load_byte(HostRegister reg, std::size_t offset) {  // zero-extended
        core_operand(false, 0x0fb6, reg, offset);
    }
    void load_word(HostRegister reg, std::size_t offset) {
        core_operand(false, 0x0fb7, reg, offset);
    }
    void store(std::size_t offset, HostRegister reg) { core_operand(true, 0x89, reg, offset); }
    void store32(std::size_t offset, HostRegister reg) { core_operand(false, 0x89, reg, offset); }
    void store_word(std::size_t offset, HostRegister reg) {
        raw(0x66);
        core_operand(false, 0x89, reg, offset);
    }
    void store_byte(std::size_t offset, HostRegister reg) {
        core_operand(false, 0x88, reg, offset, none, true);
    }
    void store_imm32(std::size_t offset, std::uint32_t value) {
        core_operand(false, 0xc7, 0, offset);
        imm32(value);
    }
    void store_sign_extended(std::size_t offset, std::int32_t value) {
        core_operand(true, 0xc7, 0, offset);
        imm32(static_cast<std::uint32_t>(value));
    }
    void add_from_core(HostRegister reg, std::size_t offset, HostRegister index = none) {
        core_operand(true, 0x03, reg, offset, index);
    }
    void subtract_core(HostRegister reg, std::size_t offset, HostRegister index = none) {
        core_operand(true, 0x2b, reg, offset, index);
    }
    void compare_with_core(HostRegister reg, std::size_t offset, HostRegister index = none) {
        core_operand(true, 0x3b, reg, offset, index);
    }
    void subtract_from_core(std::size_t offset, std::int8_t value) {
        core_operand(true, 0x83, 5, offset);
        raw(value);
    }
    void add_to_core(std::size_t offset, std::int8_t value) {
        core_operand(true, 0x83, 0, offset);
        raw(value);
    }
    void address_in_core(HostRegister reg, std::size_t offset) {
        core_operand(true, 0x8d, reg, offset);
    }
    void compare_core32(std::size_t offset, std::int8_t value) {
        core_operand(false, 0x83, 7, offset);
        raw(value);
    }
    void jump_through_core(std::size_t offset, HostRegister index = none) {
        core_operand(false, 0xff, 4, offset, index);
    }
    void call_through_core(std::size_t offset) { core_operand(false, 0xff, 2, offset); }

    // reg <-> [base + offset]
    void load_from(HostRegister reg, HostRegister base, std::int32_t offset, unsigned size) {
        switch (size) {
            case 1:
                memory_operand(false, 0x0fb6, reg, base, offset);
                break;
            case 2:
                memory_operand(false, 0x0fb7, reg, base, offset);
                break;
            case 4:
                memory_operand(false, 0x8b, reg, base, offset);
                break;
            default:
                memory_operand(true, 0x8b, reg, base, offset);
                break;
        }
    }
    void store_to(HostRegister base, std::int32_t offset, HostRegister reg, unsigned size = 8) {
        if (size == 2) raw(0x66);
        memory_operand(size == 8, size == 1 ? 0x88 : 0x89, reg, base, offset, size == 1);
    }

    // dst = base + index * scale + displacement, cut to 32 bits if narrow. `none` for absent parts.
    void lea(HostRegister dst, HostRegister base, HostRegister index, unsigned scale,
             std::int32_t displacement, bool narrow = false) {
        with_address(!narrow, 0x8d, dst, base, index, scale, displacement);
    }
    // 64 bits. A fault at an address based on rsp or rbp is a different exception, so the guest's
    // own base register has to be used.
    void load_at(HostRegister dst, HostRegister base, HostRegister index, unsigned scale,
                 std::int32_t displacement) {
        with_address(true, 0x8b, dst, base, index, scale, displacement);
    }
    void with_address(bool wide, std::uint8_t opcode, HostRegister dst, HostRegister base,
                      HostRegister index, unsigned scale, std::int32_t displacement) {
        const std::uint8_t log = scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0;
        const bool has_base = base != none, has_index = index != none;
        const bool needs_sib = has_index || !has_base || (base & 7) == decoder::rsp;
        rex(wide, dst, has_index ? index : 0, has_base ? base : 0);
        raw(opcode);
        const bool small = has_base && displacement == static_cast<std::int8_t>(displacement);
        raw((!has_base ? 0x00 : small ? 0x40 : 0x80) | (dst & 7) << 3 | (needs_sib ? 4 : base & 7));
        if (needs_sib) raw(log << 6 | (has_index ? index & 7 : 4) << 3 | (has_base ? base & 7 : 5));
        if (small)
            raw(displacement);
        else
            imm32(static_cast<std::uint32_t>(displacement));
    }
    void move(HostRegister dst, HostRegister src) { reg_reg(true, 0x89, src, dst); }
    void move32(HostRegister dst, HostRegister src) { reg_reg(false, 0x89, src, dst); }
    void zero_extend_word(HostRegister dst, HostRegister src) {
        rex(false, dst, 0, src);
        raw(0x0f, 0xb7, 0xc0 | (dst & 7) << 3 | (src & 7));
    }
    void zero_extend_byte(HostRegister dst, HostRegister src) {
        raw(0x40 | (dst >> 3) << 2 | (src >> 3), 0x0f, 0xb6, 0xc0 | (dst & 7) << 3 | (src & 7));
    }
    void compare(HostRegister a, HostRegister b) { reg_reg(true, 0x39, b, a); }
    void move_imm(HostRegister reg, std::uint64_t value) {
        if (value <= 0xffffffffu) {
            rex(false, 0, 0, reg);
            raw(0xb8 | (reg & 7));
            imm32(static_cast<std::uint32_t>(value));
        } else if (static_cast<std::int64_t>(value) == static_cast<std::int32_t>(value)) {
            rex(true, 0, 0, reg);
            raw(0xc7, 0xc0 | (reg & 7));
            imm32(static_cast<std::uint32_t>(value));
        } else {
            rex(true, 0, 0, reg);
            raw(0xb8 | (reg & 7));
            std::memcpy(at_, &value, 8);
            at_ += 8;
        }
    }
    void and_imm(HostRegister reg, std::int32_t value, bool wide) { alu_imm(4, reg, value, wide); }
    void compare_imm(HostRegister reg, std::int32_t value, bool wide) {
        alu_imm(7, reg, value, wide);
    }
    void shift_right(HostRegister reg, std::uint8_t by) { shift(5, reg, by); }
    void shift_right_signed(HostRegister reg, std::uint8_t by) { shift(7, reg, by); }
    void shift_left(HostRegister reg, std::uint8_t by) { shift(4, reg, by); }

    // Move the flags to and from their form in Core::flags, in rax.
    void flags_to_rax() { raw(0x9f, 0x0f, 0x90, 0xc0); }  // lahf; seto al
    void flags_from_rax() { raw(0x04, 0x7f, 0x9e); }      // add al, 127; sahf

    // Each returns the place of the displacement, for join().
    std::uint8_t* jump() {
        raw(0xe9);
        return hole();
    }
    std::uint8_t* jump_if(Condition c) {
        raw(0x0f, 0x80 | static_cast<std::uint8_t>(c));
        return hole();
    }
    void jump_to(const void* target) { join(jump(), target); }
    void jump_to_if(Condition c, const void* target) { join(jump_if(c), target); }
    void call(const void* target) {
        raw(0xe8);
        join(hole(), target);
    }
    void join(std::uint8_t* displacement) const { join(displacement, at_); }
    static void join(std::uint8_t* displacement, const void* target) {
        const auto distance = static_cast<const std::uint8_t*>(target) - (displacement + 4);
        const auto narrow = static_cast<std::int32_t>(distance);
        std::memcpy(displacement, &narrow, 4);
    }

    static constexpr HostRegister none = 0xff;

  protected:
    void imm32(std::uint32_t value) {
        std::memcpy(at_, &value, 4);
        at_ += 4;
    }
    std::uint8_t* hole() {
        at_ += 4;
        return at_ - 4;
    }
    void rex(bool wide, HostRegister reg, HostRegister index, HostRegister base,
             bool always = false) {
        const auto bits = (wide ? 8 : 0) | (reg >> 3) << 2 | (index >> 3) << 1 | base >> 3;
        if (bits || always) raw(0x40 | bits);
    }
    void opcode(unsigned code) {
        if (code > 0xff) raw(code >> 8);
        raw(code);
    }
    void core_operand(bool wide, unsigned code, HostRegister reg, std::size_t offset,
                      HostRegister index = none, bool byte_register = false) {
        rex(wide, reg, index == none ? 0 : index, 0, byte_register);
        opcode(code);
        const bool small = offset < 128;
        raw((small ? 0x40 : 0x80) | (reg & 7) << 3 | 4);
        raw((index == none ? 4 : index & 7) << 3 | decoder::rsp);
        if (small)
            raw(offset);
        else
            imm32(static_cast<std::uint32_t>(offset));
    }
    void memory_operand(bool wide, unsigned code, HostRegister reg, HostRegister base,
                        std::int32_t offset, bool byte_register = false) {
        rex(wide, reg, 0, base, byte_register);
        opcode(code);
        const bool small = offset == static_cast<std::int8_t>(offset);
        raw((small ? 0x40 : 0x80) | (reg & 7) << 3 | (base & 7));
        if ((base & 7) == decoder::rsp) raw(0x24);
        if (small)
            raw(offset);
        else
            imm32(static_cast<std::uint32_t>(offset));
    }
    void reg_reg(bool wide, std::uint8_t code, HostRegister reg, HostRegister rm) {
        rex(wide, reg, 0, rm);
        raw(code, 0xc0 | (reg & 7) << 3 | (rm & 7));
    }
    void alu_imm(unsigned operation, HostRegister reg, std::int32_t value, bool wide) {
        rex(wide, 0, 0, reg);
        const bool small = value == static_cast<std::int8_t>(value);
        raw(small ? 0x83 : 0x81, 0xc0 | operation << 3 | (reg & 7));
        if (small)
            raw(value);
        else
            imm32(static_cast<std::uint32_t>(value));
    }
    void shift(unsigned operation, HostRegister reg, std::uint8_t by) {
        rex(true, 0, 0, reg);
        raw(0xc1, 0xc0 | operation << 3 | (reg & 7), by);
    }

    std::uint8_t* at_ = nullptr;
    std::uint8_t* end_ = nullptr;
};

}  // namespace shadowprof::emu
