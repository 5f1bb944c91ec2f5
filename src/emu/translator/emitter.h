// Writes the instructions that surround the guest's own ones in translated code. None of them
// changes flags, unless its comment says so.
#pragma once

#include "emu/common/host_assembler.h"
#include "emu/translator/layout.h"

namespace shadowprof::emu::translator {

inline constexpr HostRegister stream_register = decoder::r15;

class Emitter : public HostAssembler {
  public:
    using HostAssembler::HostAssembler;

    // reg <-> the thread's area
    void load_area(HostRegister reg, std::size_t offset) { area_operand(0x8b, reg, offset); }
    void store_area(std::size_t offset, HostRegister reg) { area_operand(0x89, reg, offset); }
    // reg <-> a word below 2 GB
    void load_low(HostRegister reg, std::uint32_t place) { low_operand(0x8b, reg, place); }
    void store_low(std::uint32_t place, HostRegister reg) { low_operand(0x89, reg, place); }
    // Words of 32 bits below 2 GB. All of these change flags.
    void increment_low_atomically(std::uint32_t place) {
        raw(0xf0, 0xff, 0x04, 0x25);
        imm32(place);
    }
    void compare_low_half(std::uint32_t place, std::int8_t value) {
        raw(0x83, 0x3c, 0x25);
        imm32(place);
        raw(value);
    }
    void test_low_byte(std::uint32_t place, std::uint8_t bits) {
        raw(0xf6, 0x04, 0x25);
        imm32(place);
        raw(bits);
    }
    // Not zero if the profiler is dead; `life` is the place of Exchange::life.
    void test_death(std::uint32_t life) { test_low_byte(life + 3, Exchange::is_dead >> 24); }
    void compare_area_half(std::size_t offset, std::int8_t value) {
        raw(0x65, 0x83, 0x3c, 0x25);
        imm32(static_cast<std::uint32_t>(offset));
        raw(value);
    }
    void exchange_area_half(std::size_t offset, HostRegister reg) {  // of low ones; atomic
        raw(0x65, 0x87, (reg & 7) << 3 | 4, 0x25);
        imm32(static_cast<std::uint32_t>(offset));
    }
    void store_low_half(std::uint32_t place, std::uint32_t value) {
        raw(0xc7, 0x04, 0x25);
        imm32(place);
        imm32(value);
    }
    // The place in the code that join() says.
    std::uint8_t* load_place(HostRegister reg) {
        raw(0x48 | (reg >> 3) << 2, 0x8d, (reg & 7) << 3 | 5);
        return hole();
    }
    void pause() { raw(0xf3, 0x90); }
    void decrement(HostRegister reg) { raw(0xff, 0xc8 | (reg & 7)); }  // changes flags; low ones
    void store_area_constant(std::size_t offset, std::uint64_t value) {
        store_area_half(offset, static_cast<std::uint32_t>(value));
        store_area_upper_half(offset, static_cast<std::uint32_t>(value >> 32));
    }
    static constexpr std::size_t store_area_half_length = 12;
    void store_area_half(std::size_t offset, std::uint32_t value) {
        raw(0x65, 0xc7, 0x04, 0x25);
        imm32(static_cast<std::uint32_t>(offset));
        imm32(value);
    }
    void store_area_upper_half(std::size_t offset, std::uint32_t value) {
        store_area_half(offset + 4, value);
    }
    // Changes flags.
    void count_down_area(std::size_t offset) {
        raw(0x65, 0x48, 0x83, 0x2c, 0x25);
        imm32(static_cast<std::uint32_t>(offset));
        raw(1);
    }
    // Changes flags: not zero if the stream pointer has one of these bits.
    void test_stream_bits(std::uint32_t bits) {
        raw(0x41, 0xf7, 0xc7);
        imm32(bits);
    }
    void jump_through_area(std::size_t offset) {
        raw(0x65, 0xff, 0x24, 0x25);
        imm32(static_cast<std::uint32_t>(offset));
    }
    void jump_through_low(std::uint32_t place) {
        raw(0xff, 0x24, 0x25);
        imm32(place);
    }
    void jump_through(HostRegister base, std::size_t offset) {
        memory_operand(false, 0xff, 4, base, static_cast<std::int32_t>(offset));
    }
    // Jumps to where the table's entry number `index` says.
    void jump_through_table(std::uint32_t table, HostRegister index) {
        rex(false, 0, index, 0);
        raw(0xff, 0x24, 0xc0 | (index & 7) << 3 | 5);
        imm32(table);
    }
    void jump_through_memory_behind(std::int32_t distance) {  // of the instruction's end
        raw(0xff, 0x25);
        imm32(static_cast<std::uint32_t>(distance));
    }
    void data(std::uint64_t value) {
        imm32(static_cast<std::uint32_t>(value));
        imm32(static_cast<std::uint32_t>(value >> 32));
    }
    // Returns where the number is.
    std::uint8_t* store_id(std::uint32_t id) {  // mov dword [r15], id
        raw(0x41, 0xc7, 0x07);
        auto* const place = position();
        imm32(id);
        return place;
    }
    void advance_stream(std::int32_t by) { lea(stream_register, stream_register, none, 1, by); }
    void push_constant(std::int32_t value) {
        raw(0x68);
        imm32(static_cast<std::uint32_t>(value));
    }
    // Pushes a constant; join() says where it is.
    std::uint8_t* push_memory() {
        raw(0xff, 0x35);
        imm32(0);
        return at_ - 4;
    }
    void align(std::uintptr_t to) {
        while (reinterpret_cast<std::uintptr_t>(at_) % to != 0) raw(0x90);
    }
    void pop(HostRegister reg) {
        rex(false, 0, 0, reg);
        raw(0x58 | (reg & 7));
    }
    void trap() { raw(0xcc); }
    // Of move_imm() with a constant that needs all 64 bits.
    static constexpr std::ptrdiff_t length_of_whole_move = 10;
    static constexpr std::size_t jump_length = 5, short_jump_length = 2;
    // The distance is from the end of the jump.
    void jump_by(std::int32_t distance) {
        raw(0xe9);
        imm32(static_cast<std::uint32_t>(distance));
    }
    void jump_if_rcx_is_zero(std::int8_t by) { raw(0xe3, by); }
    void jump_short(std::int8_t by) { raw(0xeb, by); }
    void system_call() { raw(0x0f, 0x05); }
    // Changes flags: compares what is at [reg + offset] with a constant of 1, 2 or 4 bytes.
    void compare_memory(HostRegister reg, std::int32_t offset, std::uint32_t value, unsigned size) {
        if (size == 2) raw(0x66);
        memory_operand(false, size == 1 ? 0x80 : 0x81, 7, reg, offset);
        if (size == 1) raw(value);
        if (size == 2) raw(value, value >> 8);
        if (size == 4) imm32(value);
    }
    // reg = what is at [reg]
    void load_sign_extended(HostRegister reg, unsigned size) {
        const unsigned code = size == 1 ? 0x0fbe : size == 2 ? 0x0fbf : size == 4 ? 0x63 : 0x8b;
        memory_operand(true, code, reg, reg, 0);
    }
    // Changes flags: not zero if the 8 bytes, or 2, at [reg + offset] have one of these bits.
    void test_memory(HostRegister reg, std::int32_t offset, std::uint32_t bits, unsigned size = 8) {
        if (size == 2) raw(0x66);
        memory_operand(size == 8, 0xf7, 0, reg, offset);
        if (size == 2)
            raw(bits, bits >> 8);
        else
            imm32(bits);
    }
    // The low 64 bits of a vector register to [reg + offset].
    void store_vector(HostRegister reg, std::int32_t offset, std::uint8_t vector, bool has_avx) {
        if (vector < 16 && !has_avx) {
            raw(0x66);
            memory_operand_of(0x0fd6, vector, reg, offset);
        } else if (vector < 16) {
            raw(0xc4, (vector < 8 ? 0xe1 : 0x61) & (reg < 8 ? 0xff : 0xdf), 0x79, 0xd6);
            displacement(vector, reg, offset);
        } else {
            // In EVEX the registers' high bits are inverted: R, X, B, R' and the map.
            const auto high = (vector & 8 ? 0 : 0x80) | 0x40 | (reg < 8 ? 0x20 : 0) |
                              (vector & 16 ? 0 : 0x10) | 0x01;
            raw(0x62, high, 0xfd, 0x08, 0xd6);
            long_displacement(vector, reg, offset);
        }
    }
    // 64 bits of a mask register, or 16.
    void store_mask(HostRegister reg, std::int32_t offset, std::uint8_t mask, bool wide) {
        raw(0xc4, reg < 8 ? 0xe1 : 0xc1, wide ? 0xf8 : 0x78, 0x91);
        displacement(mask, reg, offset);
    }
    void store_constant(HostRegister reg, std::int32_t offset, std::uint32_t value) {
        rex(false, 0, 0, reg);
        raw(0xc7);
        displacement(0, reg, offset);
        imm32(value);
    }
    void wait_for_loads() { raw(0x0f, 0xae, 0xe8); }  // lfence
    void read_clock() { raw(0x0f, 0x31); }            // rdtsc: to edx:eax
    // Behind that; changes rdx and flags.
    void whole_clock_in_rax() {
        raw(0x48, 0xc1, 0xe2, 0x20);  // shl rdx, 32
        raw(0x48, 0x09, 0xd0);        // or rax, rdx
    }
    void set_gs(HostRegister base) { raw(0xf3, 0x48, 0x0f, 0xae, 0xd8 | base); }  // a low one
    void read_fs_base(HostRegister reg) {
        raw(0xf3, 0x48 | reg >> 3, 0x0f, 0xae, 0xc0 | (reg & 7));
    }
    // A jump whose displacement can be changed while others execute it: it lies in one cache line.
    std::uint8_t* patchable_jump() {
        while ((reinterpret_cast<std::uintptr_t>(at_ + 1) & 63) > 60) raw(0x90);
        return jump();
    }

  private:
    void low_operand(std::uint8_t code, HostRegister reg, std::uint32_t place) {
        raw(0x48 | (reg >> 3) << 2, code, (reg & 7) << 3 | 4, 0x25);
        imm32(place);
    }
    void area_operand(std::uint8_t code, HostRegister reg, std::size_t offset) {
        raw(0x65, 0x48 | (reg >> 3) << 2, code, (reg & 7) << 3 | 4, 0x25);
        imm32(static_cast<std::uint32_t>(offset));
    }
    void displacement(std::uint8_t field, HostRegister reg, std::int32_t offset) {
        const bool small = offset == static_cast<std::int8_t>(offset);
        raw((small ? 0x40 : 0x80) | (field & 7) << 3 | (reg & 7));
        if (small)
            raw(offset);
        else
            imm32(static_cast<std::uint32_t>(offset));
    }
    // EVEX scales short displacements.
    void long_displacement(std::uint8_t field, HostRegister reg, std::int32_t offset) {
        raw(0x80 | (field & 7) << 3 | (reg & 7));
        imm32(static_cast<std::uint32_t>(offset));
    }
    void memory_operand_of(unsigned code, std::uint8_t field, HostRegister reg,
                           std::int32_t offset) {
        rex(false, field, 0, reg);
        raw(code >> 8, code);
        displacement(field, reg, offset);
    }
};

}  // namespace shadowprof::emu::translator
