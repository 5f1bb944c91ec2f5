// How blocks end. A direct exit is a jump that is joined to its target's code once there is any;
// an indirect one looks its target up in the Core's jump table.
#include "emu/interpreter/block_compiler.h"

namespace shadowprof::emu {

namespace {

using decoder::Flow;
using decoder::Mnemonic;
using decoder::OperandKind;
using decoder::rax, decoder::rcx, decoder::rsp;

// The mnemonics of conditional jumps are in the hardware's order of conditions.
constexpr bool is_on_flags(Mnemonic m) {
    return Mnemonic::jo <= m && m <= Mnemonic::jg;
}
constexpr Condition condition_of(Mnemonic m) {
    return static_cast<Condition>(static_cast<unsigned>(m) - static_cast<unsigned>(Mnemonic::jo));
}
static_assert(condition_of(Mnemonic::jne) == Condition::ne);
static_assert(condition_of(Mnemonic::jg) == Condition::g);

}  // namespace

void BlockCompiler::branch(std::size_t index) {
    const auto& i = at(index);
    left_ = true;
    switch (i.flow) {
        case Flow::conditional:
            return is_on_flags(i.mnemonic) ? conditional(index) : counted(index);
        case Flow::jump:
            save_flags();
            advance_values();
            return go_to(i.target);
        case Flow::indirect_jump: {
            branch_target(index);
            save_flags();
            advance_values();
            const auto target = pick(0);
            a_.load(target, offsetof(Core, scratch));
            return go_to_register(target);
        }
        case Flow::call:
        case Flow::indirect_call:
            return call(index);
        default:
            return return_(index);
    }
}

void BlockCompiler::conditional(std::size_t index) {
    const auto& i = at(index);
    save_flags();
    load_flags();
    advance_values();
    go_to_if(condition_of(i.mnemonic), i.target);
    go_to(i.end());
}

// loop, loope, loopne, jecxz, jrcxz, xbegin
void BlockCompiler::counted(std::size_t index) {
    using enum Mnemonic;
    const auto& i = at(index);
    save_flags();
    if (i.mnemonic == xbegin) {
        // The transaction aborts at once and gives no reason, as it may at any time.
        a_.store_sign_extended(general_at(rax), 0);
        clobber(rax);
        capture_destinations(index);
        advance_values();
        return go_to(i.target);
    }
    bool narrow = i.mnemonic == jecxz;
    const bool counts = i.mnemonic == loop || i.mnemonic == loope || i.mnemonic == loopne;
    ensure(rcx);
    reserved_ = bit(rcx);
    if (counts) {
        for (const auto& operand : i.operands())
            if (operand.kind == OperandKind::reg && operand.reg.is_general(rcx))
                narrow = operand.reg.bits == 32;
        a_.lea(rcx, rcx, HostAssembler::none, 1, -1, narrow);
        a_.store(general_at(rcx), rcx);
        capture_destinations(index);
    }
    advance_values();
    cache_.flags_live = false;
    a_.compare_imm(rcx, 0, !narrow);
    if (i.mnemonic == loop) {
        go_to_if(Condition::ne, i.target);
    } else if (!counts) {
        go_to_if(Condition::e, i.target);
    } else {
        auto* counted_out = a_.jump_if(Condition::e);
        load_flags();
        go_to_if(i.mnemonic == loope ? Condition::e : Condition::ne, i.target);
        a_.join(counted_out);
    }
    go_to(i.end());
}

void BlockCompiler::branch_target(std::size_t index) {
    const auto& i = at(index);
    const auto& target = i.operands()[0];
    if (target.kind == OperandKind::reg) {
        const auto reg = pick(0);
        a_.load(reg, general_at(target.reg.number));
        a_.store(offsetof(Core, scratch), reg);
        return;
    }
    const auto pointer = pick(decoder::general_registers_used(i) | bit(rax));
    reserved_ = bit(pointer);
    address(pointer, i, target);
    capture_address(index, pointer);
    touch(index, pointer, 8, Access::read, [=, this] {
        capture_loaded(index, pointer);
        a_.load_from(pointer, pointer, 0, 8);
        a_.store(offsetof(Core, scratch), pointer);
    });
}

void BlockCompiler::call(std::size_t index) {
    const auto& i = at(index);
    const bool direct = i.flow == Flow::call;
    if (!direct) branch_target(index);
    reserved_ = 0;
    push_value(index, 8,
               [this, back = i.end().value](HostRegister reg) { a_.move_imm(reg, back); });
    save_flags();
    advance_values();
    if (direct) return go_to(i.target);
    const auto target = pick(0);
    a_.load(target, offsetof(Core, scratch));
    go_to_register(target);
}

void BlockCompiler::return_(std::size_t index) {
    const auto& i = at(index);
    std::int32_t released = 8;
    for (const auto& operand : i.explicit_operands())
        if (operand.kind == OperandKind::immediate)
            released += static_cast<std::int32_t>(operand.immediate & 0xffff);
    const auto target = pick(bit(rax));
    reserved_ = bit(target);
    a_.load(target, general_at(rsp));
    touch(index, target, 8, Access::read, [=, this] {
        a_.load_from(target, target, 0, 8);
        move_stack_pointer(released);
    });
    save_flags();
    if (cache_.values == target) cache_.values = HostAssembler::none;
    advance_values();
    go_to_register(target);
}

void BlockCompiler::go_to(Address target) {
    if (directory_.may_change(target)) {
        const auto reg = pick(0);
        a_.move_imm(reg, target.value);
        return go_to_register(reg);
    }
    auto* displacement = a_.jump();
    link(displacement, target);
}

void BlockCompiler::go_to_if(Condition c, Address target) {
    auto* displacement = a_.jump_if(c);
    if (!directory_.may_change(target)) return link(displacement, target);
    late_.push_back([=, this] {
        a_.join(displacement);
        cache_ = {};
        const auto reg = pick(0);
        a_.move_imm(reg, target.value);
        go_to_register(reg);
    });
}

void BlockCompiler::link(std::uint8_t* displacement, Address target) {
    const auto number = static_cast<std::uint32_t>(links_->size());
    links_->push_back({code_.offset_of(displacement), target});
    if (const auto* entry = directory_.entry_of(target)) {
        HostAssembler::join(displacement, entry);
        return;
    }
    late_.push_back([=, this] {
        a_.join(displacement);
        exit(ExitKind::link, number);
    });
}

void BlockCompiler::go_to_register(HostRegister target) {
    const auto table = offsetof(Core, jumps) + (recorded_ ? sizeof(Core::jumps[0]) : 0);
    const auto entry = pick(bit(target));
    a_.store(offsetof(Core, rip), target);
    a_.move(entry, target);
    a_.and_imm(entry, jump_table_size - 1, false);
    a_.shift_left(entry, 4);
    a_.compare_with_core(target, table + offsetof(JumpEntry, guest), entry);
    exit_later_if(Condition::ne, ExitKind::lookup, 0);
    a_.jump_through_core(table + offsetof(JumpEntry, host), entry);
}

}  // namespace shadowprof::emu
