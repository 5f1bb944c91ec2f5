// Stack instructions. The host's own stack is not the guest's, so these are written out. rsp
// changes last, after everything that may fault.
#include <algorithm>

#include "emu/interpreter/block_compiler.h"

namespace shadowprof::emu {

namespace {

using decoder::Operand;
using decoder::OperandKind;
using decoder::rax, decoder::rbp, decoder::rdx, decoder::rsi, decoder::rsp;
using decoder::RegisterKind;

// The size of the hidden memory operand.
unsigned stack_operand_size(const decoder::Instruction& i) {
    for (const auto& operand : i.operands())
        if (operand.kind == OperandKind::memory &&
            operand.visibility == decoder::Visibility::hidden)
            return operand.bits / 8u;
    return 8;
}

}  // namespace

void BlockCompiler::move_stack_pointer(std::int32_t by) {
    const auto reg = pick(reserved_);
    a_.load(reg, general_at(rsp));
    a_.lea(reg, reg, HostAssembler::none, 1, by);
    a_.store(general_at(rsp), reg);
}

void BlockCompiler::push_value(std::size_t index, unsigned size, const Loader& load) {
    const auto pointer = pick(reserved_ | bit(rax));
    reserved_ |= bit(pointer);
    a_.load(pointer, general_at(rsp));
    a_.lea(pointer, pointer, HostAssembler::none, 1, -static_cast<std::int32_t>(size));
    touch(index, pointer, size, Access::write, [=, this] {
        const auto value = pick(reserved_);
        load(value);
        a_.store_to(pointer, 0, value, size);
        move_stack_pointer(-static_cast<std::int32_t>(size));
    });
}

void BlockCompiler::push(std::size_t index) {
    const auto& i = at(index);
    const auto& source = i.operands()[0];
    const auto size = stack_operand_size(i);
    switch (source.kind) {
        case OperandKind::immediate:
            return push_value(index, size, [this, value = source.immediate](HostRegister reg) {
                a_.move_imm(reg, value);
            });
        case OperandKind::memory: {
            const auto pointer = pick(decoder::general_registers_used(i) | bit(rax));
            reserved_ = bit(pointer);
            address(pointer, i, source);
            capture_address(index, pointer);
            touch(index, pointer, size, Access::read, [=, this] {
                capture_loaded(index, pointer);
                a_.load_from(pointer, pointer, 0, size);
                a_.store(offsetof(Core, scratch), pointer);
            });
            return push_value(index, size,
                              [this](HostRegister reg) { a_.load(reg, offsetof(Core, scratch)); });
        }
        default:
            break;
    }
    if (source.reg.kind == RegisterKind::segment) {
        return push_value(index, size, [this, number = source.reg.number](HostRegister reg) {
            a_.raw(0x40 | reg >> 3, 0x8c, 0xc0 | number << 3 | (reg & 7));  // mov r32, segment
        });
    }
    push_value(index, size, [this, from = general_at(source.reg.number)](HostRegister reg) {
        a_.load(reg, from);
    });
}

void BlockCompiler::pop(std::size_t index) {
    const auto& i = at(index);
    const auto& destination = i.operands()[0];
    const auto size = stack_operand_size(i);
    const auto step = static_cast<std::int32_t>(size);
    if (destination.kind == OperandKind::reg && destination.reg.kind == RegisterKind::segment)
        return unsupported(index);

    const auto pointer = pick(bit(rax));
    reserved_ = bit(pointer);
    a_.load(pointer, general_at(rsp));
    if (destination.kind == OperandKind::memory) {
        touch(index, pointer, size, Access::read, [=, this] {
            a_.load_from(pointer, pointer, 0, size);
            a_.store(offsetof(Core, scratch), pointer);
        });
        const auto to = pick(decoder::general_registers_used(i) | bit(rax));
        reserved_ = bit(to);
        address(to, i, destination, true, step);
        capture_address(index, to);
        touch(index, to, size, Access::write, [=, this] {
            const auto value = pick(reserved_);
            a_.load(value, offsetof(Core, scratch));
            a_.store_to(to, 0, value, size);
            move_stack_pointer(step);
        });
        return;
    }
    const auto reg = destination.reg.number;
    touch(index, pointer, size, Access::read, [=, this] {
        const bool in_place = reg != rsp && size == 8;
        const auto value = in_place ? reg : pick(reserved_);
        clobber(value);
        a_.load_from(value, pointer, 0, size);
        reserved_ |= bit(value);
        move_stack_pointer(step);
        if (size == 2)
            a_.store_word(general_at(reg), value);
        else
            a_.store(general_at(reg), value);
        clobber(reg);
        if (in_place) cache_.valid |= bit(reg);
    });
    capture_destinations(index);
}

void BlockCompiler::push_flags(std::size_t index) {
    save_flags();
    a_.call(code_.rflags);
    a_.store(offsetof(Core, scratch), rax);
    clobber_all();
    push_value(index, stack_operand_size(at(index)),
               [this](HostRegister reg) { a_.load(reg, offsetof(Core, scratch)); });
}

void BlockCompiler::pop_flags(std::size_t index) {
    const auto size = stack_operand_size(at(index));
    const auto pointer = pick(bit(rax));
    reserved_ = bit(pointer);
    save_flags();
    a_.load(pointer, general_at(rsp));
    touch(index, pointer, size, Access::read, [=, this] {
        a_.load_from(pointer, pointer, 0, size);
        a_.store(offsetof(Core, scratch), pointer);
    });
    move_stack_pointer(static_cast<std::int32_t>(size));
    a_.load(rsi, offsetof(Core, scratch));
    a_.move_imm(rdx, size);
    a_.call(code_.set_rflags);
    clobber_all();
    a_.compare_core32(offsetof(Core, helper_failed), 0);
    auto* from = a_.jump_if(Condition::ne);
    late_.push_back([=, this] {
        a_.join(from);
        a_.move_imm(rax, at(index).end().value);
        a_.store(offsetof(Core, rip), rax);
        exit(ExitKind::flag_trap, static_cast<std::uint32_t>(index + 1));
    });
}

// rsp = rbp; pop rbp
void BlockCompiler::leave(std::size_t index) {
    const auto size = stack_operand_size(at(index));
    const auto pointer = pick(bit(rax) | bit(rbp));
    reserved_ = bit(pointer);
    a_.load(pointer, general_at(rbp));
    touch(index, pointer, size, Access::read, [=, this] {
        a_.load_from(pointer, pointer, 0, size);
        clobber(rbp);
        a_.load(rbp, general_at(rbp));
        a_.lea(rbp, rbp, HostAssembler::none, 1, static_cast<std::int32_t>(size));
        a_.store(general_at(rsp), rbp);
        if (size == 2)
            a_.store_word(general_at(rbp), pointer);
        else
            a_.store(general_at(rbp), pointer);
    });
    capture_destinations(index);
}

void BlockCompiler::enter(std::size_t index) {
    const auto& i = at(index);
    const auto frame_size = static_cast<std::uint32_t>(i.operands()[0].immediate & 0xffff);
    const auto level = static_cast<std::uint32_t>(i.operands()[1].immediate & 31);
    save_flags();
    a_.move_imm(rsi, level | frame_size << 8 | stack_operand_size(i) << 24);
    a_.call(code_.enter);
    clobber_all();
    a_.compare_core32(offsetof(Core, helper_failed), 0);
    exit_later_if(Condition::ne, ExitKind::memory_fault, static_cast<std::uint32_t>(index));
    capture_destinations(index);
    exit_if_code_changed(index);
}

void BlockCompiler::set_direction(std::size_t index) {
    const bool is_backward = at(index).mnemonic == decoder::Mnemonic::std;
    a_.store_sign_extended(offsetof(Core, backward), is_backward ? 1 : 0);
}

}  // namespace shadowprof::emu
