// String instructions, whole register files to and from memory, and others that need a helper.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "emu/interpreter/block_compiler.h"
#include "emu/interpreter/core_helpers.h"
#include "emu/interpreter/extended_helpers.h"
#include "emu/interpreter/reencode.h"

namespace shadowprof::emu {

namespace {

using decoder::Mnemonic;
using decoder::Operand;
using decoder::OperandKind;
using decoder::rax, decoder::rdx, decoder::rsi;

StringOperation string_operation(const decoder::Instruction& i) {
    using enum Mnemonic;
    StringOperation operation{};
    const auto is = [&](Mnemonic b, Mnemonic w, Mnemonic d, Mnemonic q,
                        StringOperation::Kind kind) {
        const auto size = i.mnemonic == b   ? 1
                          : i.mnemonic == w ? 2
                          : i.mnemonic == d ? 4
                          : i.mnemonic == q ? 8
                                            : 0;
        if (size == 0) return;
        operation.kind = kind;
        operation.size = static_cast<std::uint8_t>(size);
    };
    is(movsb, movsw, movsd, movsq, StringOperation::movs);
    is(stosb, stosw, stosd, stosq, StringOperation::stos);
    is(lodsb, lodsw, lodsd, lodsq, StringOperation::lods);
    is(scasb, scasw, scasd, scasq, StringOperation::scas);
    is(cmpsb, cmpsw, cmpsd, cmpsq, StringOperation::cmps);
    operation.repeat = i.repeat == decoder::Repeat::none  ? 0
                       : i.repeat == decoder::Repeat::rep ? 1
                                                          : 2;
    for (const auto& operand : i.operands()) {
        if (operand.kind != OperandKind::memory) continue;
        if (operand.memory.address_bits == 32) operation.narrow = true;
        if (!operand.memory.base.is_general(rsi)) continue;
        if (operand.memory.segment == decoder::Segment::fs) operation.segment = 1;
        if (operand.memory.segment == decoder::Segment::gs) operation.segment = 2;
    }
    return operation;
}

bool is_one_of(Mnemonic m, std::initializer_list<Mnemonic> set) {
    return std::find(set.begin(), set.end(), m) != set.end();
}

}  // namespace

void BlockCompiler::string(std::size_t index) {
    const auto operation = string_operation(at(index));
    if (operation.size == 0) return unsupported(index);
    capture_before_helper(index);
    save_flags();
    a_.move_imm(rsi, operation.packed());
    a_.call(code_.string);
    clobber_all();
    a_.compare_core32(offsetof(Core, helper_failed), 0);
    exit_later_if(Condition::ne, ExitKind::memory_fault, static_cast<std::uint32_t>(index));
    capture_destinations(index);
    if (operation.kind == StringOperation::movs || operation.kind == StringOperation::stos)
        exit_if_code_changed(index);
}

// The area always goes to a substitute: how much of it is touched depends on edx:eax and on the
// area itself, which is left to the host's CPU. Components that are not switched with the guest
// (see switched_components) are taken out of edx:eax.
void BlockCompiler::save_or_restore_state(std::size_t index) {
    using enum Mnemonic;
    const auto& i = at(index);
    const auto& memory = i.operands()[0];
    const bool is_fxsave = is_one_of(i.mnemonic, {fxsave, fxsave64, fxrstor, fxrstor64});
    const bool restores = is_one_of(i.mnemonic, {fxrstor, fxrstor64, xrstor, xrstor64});
    const auto components = switched_components();
    const std::uint32_t size = is_fxsave ? 512 : components & 0x80 ? 2688 : 832;
    constexpr HostRegister pointer = rsi;

    capture_before_helper(index);
    save_flags();
    call_ordinary(restore_x87_pointers, 0);
    const auto at_address = pick(decoder::general_registers_used(i) | bit(rax));
    address(at_address, i, memory);
    a_.store(offsetof(Core, slow_address), at_address);
    a_.store_imm32(offsetof(Core, slow_access),
                   size | access_by_substitute | access_reads | (restores ? 0 : access_writes));
    a_.call(code_.resolve);
    clobber_all();
    a_.move(pointer, rax);
    if (!is_fxsave) {
        a_.load32(rax, general_at(rax));
        a_.load32(rdx, general_at(rdx));
        a_.and_imm(rax, static_cast<std::int32_t>(components), false);
        a_.and_imm(rdx, static_cast<std::int32_t>(components >> 32), false);
    }
    const auto bytes = host_encoding(i, pointer);
    mark(index);
    a_.bytes(bytes->view());
    if (restores) {
        // The CPU remembers the area that it last restored from, and xsaveopt leaves out what has
        // not changed since. The substitute must not count as that area, so another one is
        // restored.
        call_ordinary(restore_x87_pointers, 0);
    } else {
        a_.call(code_.finish_write);
        exit_if_code_changed(index);
    }
}

void BlockCompiler::gather_or_scatter(std::size_t index) {
    const auto& i = at(index);
    if (!is_valid_gather(i)) {
        mark(index);
        a_.raw(0x0f, 0x0b);  // ud2: as the CPU treats it
        left_ = true;
        return;
    }
    access_by(emu::gather_or_scatter, index);
}

// Calls a helper that takes the instruction and whose access may fault.
void BlockCompiler::access_by(void (*helper)(Core*, std::uint64_t) noexcept, std::size_t index) {
    capture_before_helper(index);
    save_flags();
    call_ordinary(helper, std::bit_cast<std::uint64_t>(&at(index)));
    a_.compare_core32(offsetof(Core, helper_failed), 0);
    exit_later_if(Condition::ne, ExitKind::memory_fault, static_cast<std::uint32_t>(index));
    capture_destinations(index);
    exit_if_code_changed(index);
}

// For instructions that a helper carries out: tries on bytes of our own, at rax, whether the
// processor knows the instruction. It may execute what a hypervisor hides from cpuid, or refuse
// some prefixes.
void BlockCompiler::try_at_rax(std::size_t index, std::span<const std::byte> instruction) {
    a_.address_in_core(rax, offsetof(Core, nobodys_line));
    mark(index);
    for (const auto byte : instruction) {
        constexpr std::array change_address{0x64, 0x65, 0x67};
        if (std::ranges::count(change_address, std::to_integer<int>(byte)) == 0) a_.raw(byte);
    }
    clobber(rax);
}

void BlockCompiler::clear_cache_line(std::size_t index) {
    try_at_rax(index, at(index).encoding());
    access_by(clear_line, index);
}

void BlockCompiler::move_64_bytes(std::size_t index) {
    const auto& i = at(index);
    const auto& destination = i.operands()[0];
    const auto& source = i.operands()[1];
    capture_before_helper(index);
    save_flags();
    constexpr std::array from_rax_to_rax{std::byte{0x66}, std::byte{0x0f}, std::byte{0x38},
                                         std::byte{0xf8}, std::byte{0x00}};
    try_at_rax(index, from_rax_to_rax);
    a_.load(rax, general_at(destination.reg.number));
    if (source.memory.address_bits == 32) a_.move32(rax, rax);
    a_.store(offsetof(Core, scratch), rax);
    clobber(rax);
    const auto pointer = pick(decoder::general_registers_used(i));
    address(pointer, i, source);
    a_.store(offsetof(Core, slow_address), pointer);
    a_.call(code_.move_64_bytes);
    clobber_all();
    a_.compare_core32(offsetof(Core, helper_failed), 0);
    exit_later_if(Condition::ne, ExitKind::memory_fault, static_cast<std::uint32_t>(index));
    exit_if_code_changed(index);
}

void BlockCompiler::segment_base(std::size_t index) {
    using enum Mnemonic;
    const auto& i = at(index);
    const auto& operand = i.operands()[0];
    const auto base = is_one_of(i.mnemonic, {rdfsbase, wrfsbase}) ? offsetof(Core, fs_base)
                                                                  : offsetof(Core, gs_base);
    const bool reads = is_one_of(i.mnemonic, {rdfsbase, rdgsbase});
    const auto general = general_at(operand.reg.number);
    const auto reg = pick(0);
    const auto from = reads ? base : general, to = reads ? general : base;
    if (operand.bits == 32)
        a_.load32(reg, from);
    else
        a_.load(reg, from);
    if (!reads && operand.bits == 64) {
        // Only canonical addresses are allowed: their upper bits repeat bit 47.
        const auto extended = pick(bit(reg));
        save_flags();
        cache_.flags_live = false;
        a_.move(extended, reg);
        a_.shift_left(extended, 16);
        a_.shift_right_signed(extended, 16);
        a_.compare(extended, reg);
        exit_later_if(Condition::ne, ExitKind::protection, static_cast<std::uint32_t>(index));
    }
    a_.store(to, reg);
    if (reads) clobber(operand.reg.number);
    capture_destinations(index);
}

void BlockCompiler::call_ordinary(OrdinaryFunction function, std::uint64_t argument) {
    a_.move_imm(rsi, std::bit_cast<std::uint64_t>(function));
    a_.move_imm(rdx, argument);
    a_.call(code_.ordinary);
    clobber_all();
}

}  // namespace shadowprof::emu
