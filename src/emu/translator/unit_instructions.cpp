#include "emu/translator/unit_instructions.h"

#include <algorithm>
#include <cstddef>

#include "ptrace/registers.h"

namespace shadowprof::emu::translator {

using decoder::Instruction;
using decoder::MemoryUse;
using decoder::Mnemonic;
using decoder::Operand;
using decoder::OperandKind;
using decoder::RegisterKind;
using decoder::Segment;

namespace {

bool writes_stream_register(const Instruction& instruction) {
    const auto operands = instruction.operands();
    return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.writes && operand.reg.is_general(stream_register);
    });
}

}  // namespace

bool touches_gs(const Instruction& instruction) {
    if (instruction.mnemonic == Mnemonic::rdgsbase || instruction.mnemonic == Mnemonic::wrgsbase ||
        instruction.mnemonic == Mnemonic::lgs)
        return true;
    const auto* explicit_operand = explicit_memory(instruction);
    for (const auto& operand : instruction.operands()) {
        if (operand.reg.kind == RegisterKind::segment && operand.writes &&
            operand.reg.number == static_cast<std::uint8_t>(Segment::gs))
            return true;
        const bool in_gs = operand.kind == OperandKind::memory &&
                           operand.memory.segment == Segment::gs &&
                           operand.memory.use != MemoryUse::address_only;
        if (!in_gs) continue;
        const bool can_be_rewritten =
            &operand == explicit_operand && operand.memory.use == MemoryUse::access &&
            !operand.memory.is_rip_relative() && !is_cut_behind_address(instruction, operand);
        if (!can_be_rewritten) return true;
    }
    return false;
}

void InstructionWriter::write(const Instruction& instruction) {
    if (instruction.mnemonic == Mnemonic::popf) return write_popf(instruction);
    if (instruction.mnemonic == Mnemonic::popfq) return write_popfq(instruction);
    if (instruction.mnemonic == Mnemonic::pushfq) return write_pushfq(instruction);
    const auto* memory = explicit_memory(instruction);
    const bool uses_r15 = uses_stream_register(instruction);
    const bool in_gs =
        memory && memory->memory.segment == Segment::gs && memory->memory.use == MemoryUse::access;
    if (uses_r15) w_.to_guest();
    if (memory && memory->memory.is_rip_relative()) {
        if (const auto moved = decoder::moved_to(instruction, w_.here())) {
            a_.bytes(moved->view());
            w_.wrote_distance(std::size_t{moved->length} - moved->displacement);
        } else if (memory->memory.use == MemoryUse::address_only) {
            // Anything else is a hint, which may be left out.
            if (instruction.mnemonic == Mnemonic::lea) {
                const auto& destination = instruction.operands()[0].reg;
                const auto target = rip_target(instruction, *memory).value;
                if (destination.bits < 32) return w_.leave_unsupported(instruction);
                const auto narrow = destination.bits == 32 || memory->memory.address_bits == 32;
                w_.move_address(destination.number, {narrow ? target & 0xffffffffu : target});
            }
        } else if (is_cut_behind_address(instruction, *memory)) {
            return w_.leave_unsupported(instruction);
        } else {
            const auto borrowed = w_.borrow(instruction);
            w_.address(borrowed, instruction, *memory, false);
            write_with_memory_at(instruction, borrowed);
        }
    } else if (in_gs) {
        const auto borrowed = w_.borrow(instruction);
        w_.address(borrowed, instruction, *memory, true);
        w_.mark(borrowed);
        write_with_memory_at(instruction, borrowed);
    } else {
        a_.bytes(instruction.encoding());
    }
    if (uses_r15 && writes_stream_register(instruction)) {
        w_.stream_register_was_changed();
    }
}

void InstructionWriter::write_with_constant_at(const Instruction& instruction,
                                               decoder::ConstantField constant) {
    const bool uses_r15 = uses_stream_register(instruction);
    if (uses_r15) w_.to_guest();
    const auto borrowed = w_.borrow(instruction);
    a_.move_imm(borrowed, instruction.address.value + constant.offset);
    a_.load_sign_extended(borrowed, constant.size);
    a_.bytes(decoder::with_constant_in(instruction, borrowed)->view());
    w_.give_back(borrowed);
    if (uses_r15 && writes_stream_register(instruction)) w_.stream_register_was_changed();
}

// In the cache the trap flag would stop the thread behind each of our instructions, so who sets it
// goes on natively. The test reads all that the instruction reads, so that what faults does so
// while the flags are still the guest's.
void InstructionWriter::write_popf(const Instruction& instruction) {
    constexpr unsigned size = 2;
    a_.test_memory(decoder::rsp, 0, trap_flag, size);
    leave_if_nonzero(instruction);
    a_.bytes(instruction.encoding());
}

void InstructionWriter::leave_if_nonzero(const Instruction& instruction) {
    w_.late([this, &instruction, jump = a_.jump_if(Condition::ne)] {
        a_.join(jump);
        w_.ask_within(Request::unsupported, instruction.address);
    });
}

// The flag for alignment checks is kept in the thread's area and never set in the cache. Java sets
// it to find out whether the processor has it.
void InstructionWriter::write_popfq(const Instruction& instruction) {
    constexpr auto rax = decoder::rax, rsp = decoder::rsp;
    constexpr int size = 8;
    a_.test_memory(rsp, 0, alignment_check_flag | trap_flag);
    auto* const sets_it = a_.jump_if(Condition::ne);
    a_.store_area_constant(offsetof(ThreadArea, alignment_check), 0);
    a_.bytes(instruction.encoding());
    w_.late([this, &instruction, sets_it, back = a_.position()] {
        a_.join(sets_it);
        a_.test_memory(rsp, 0, trap_flag);
        leave_if_nonzero(instruction);
        a_.store_area(slot_for(rax), rax);
        w_.mark(rax);
        a_.load_from(rax, rsp, 0, size);
        a_.store_area(third_temp, rax);
        a_.and_imm(rax, ~static_cast<std::int32_t>(alignment_check_flag), true);
        a_.store_to(rsp, 0, rax);
        a_.bytes(instruction.encoding());
        a_.load_area(rax, third_temp);
        a_.store_to(rsp, -size, rax);
        a_.store_area_constant(offsetof(ThreadArea, alignment_check), alignment_check_flag);
        w_.give_back(rax);
        a_.jump_to(back);
    });
}

void InstructionWriter::write_pushfq(const Instruction& instruction) {
    constexpr auto rax = decoder::rax, rcx = decoder::rcx, rsp = decoder::rsp;
    a_.bytes(instruction.encoding());
    a_.store_area(slot_for(rcx), rcx);
    w_.mark(rcx);
    a_.load_area(rcx, offsetof(ThreadArea, alignment_check));
    a_.jump_if_rcx_is_zero(Emitter::jump_length);
    auto* const is_set = a_.jump();
    const auto* const back = a_.position();
    w_.give_back(rcx);
    w_.late([this, is_set, back] {
        a_.join(is_set);
        a_.store_area(slot_for(rax), rax);
        a_.load_from(rax, rsp, 0, 8);
        a_.lea(rax, rax, rcx, 1, 0);  // without changing flags
        a_.store_to(rsp, 0, rax);
        a_.load_area(rax, slot_for(rax));
        a_.jump_to(back);
    });
}

void InstructionWriter::write_with_memory_at(const Instruction& instruction,
                                             HostRegister borrowed) {
    const auto bytes = decoder::with_memory_at(instruction, borrowed);
    if (bytes && explicit_memory(instruction)->memory.segment == Segment::fs) a_.raw(fs_prefix);
    if (bytes) a_.bytes(bytes->view());
    w_.give_back(borrowed);
    if (!bytes) w_.leave_unsupported(instruction);
}

}  // namespace shadowprof::emu::translator
