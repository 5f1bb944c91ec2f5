#include "emu/translator/unit_flow.h"

#include <cstddef>
#include <utility>

#include "emu/translator/unit_compiler.h"
#include "ptrace/registers.h"

namespace shadowprof::emu::translator {

using decoder::Flow;
using decoder::Instruction;
using decoder::Mnemonic;
using decoder::OperandKind;
using decoder::Segment;

namespace {

constexpr HostRegister none = Emitter::none;

// Conditions are numbered as in the low bits of the hardware's opcodes.
std::optional<Condition> condition_of(const Instruction& branch) {
    if (branch.mnemonic < Mnemonic::jo || branch.mnemonic > Mnemonic::jg) return {};
    return static_cast<Condition>(static_cast<unsigned>(branch.mnemonic) -
                                  static_cast<unsigned>(Mnemonic::jo));
}

// Traps that transfer no control by themselves: they fault, in the cache as anywhere.
bool may_be_copied(const Instruction& trap) {
    switch (trap.mnemonic) {
        case Mnemonic::int_:
        case Mnemonic::int1:
        case Mnemonic::int3:
        case Mnemonic::ud0:
        case Mnemonic::ud1:
        case Mnemonic::ud2:
        case Mnemonic::hlt:
            return true;
        default:
            return trap.privileged && trap.mnemonic != Mnemonic::sysret &&
                   trap.mnemonic != Mnemonic::sysexit;
    }
}

}  // namespace

void FlowWriter::begin_unit() {
    exits_.clear();
    executed_.clear();
}

std::span<const Exit> FlowWriter::exits_of(std::uint32_t unit) {
    for (auto& exit : exits_) exit.unit = unit;
    return exits_;
}

// ---- Branches

void FlowWriter::write_branch(std::size_t block) {
    const auto& branch = w_.unit().blocks[block]->last();
    const auto* const next = w_.next_of(block);
    switch (branch.flow) {
        case Flow::conditional:
            write_conditional(block);
            return;
        case Flow::jump:
            if (!next) leave_directly(branch.target);
            return;
        case Flow::call:
            push_return_address(branch);
            if (!next) leave_directly(branch.target);
            return;
        case Flow::indirect_jump:
        case Flow::indirect_call:
        case Flow::return_:
            if (branch.flow != Flow::return_ && branch.operands()[0].bits != 64)
                return w_.leave_unsupported(branch);
            write_target(branch);
            if (next)
                expect_target(next->start);
            else
                leave_indirectly();
            return;
        case Flow::system_call:
            leave_with_system_call(branch.end());
            return;
        case Flow::trap:
            if (!may_be_copied(branch)) return w_.leave_unsupported(branch);
            instructions_.write(branch);
            leave_directly(branch.end());
            return;
        case Flow::next:
            return;
    }
}

// In one store, as the guest would: after two, the return would wait until both have left the store
// buffer.
void FlowWriter::push_return_address(const Instruction& call) {
    const auto address = call.end().value;
    const auto narrow = static_cast<std::int32_t>(address);
    if (static_cast<std::int64_t>(address) == narrow) {
        w_.push_narrow(narrow);
        return;
    }
    w_.late([this, address, place = a_.push_memory()] {
        a_.align(sizeof address);
        a_.join(place);
        w_.data({address});
    });
}

void FlowWriter::write_conditional(std::size_t block) {
    const auto& branch = w_.unit().blocks[block]->last();
    if (branch.mnemonic == Mnemonic::xbegin) {
        // A transaction may fail for any reason. Here it always does.
        a_.move_imm(decoder::rax, 0);
        leave_directly(branch.target);
        return;
    }
    const auto* const next = w_.next_of(block);
    const bool taken_goes_on =
        next && next->start == branch.target && branch.target != branch.end();
    const auto aside = taken_goes_on ? branch.end() : branch.target;
    if (const auto condition = condition_of(branch)) {
        w_.late([this, jump = a_.jump_if(taken_goes_on ? !*condition : *condition),
                 exit = add_exit(ExitKind::direct, aside)] {
            a_.join(jump);
            jump_to_exit(exit);
        });
    } else {
        recording_.counter(block, w_.unit().blocks[block]->instructions.size() - 1);
        write_counted(branch, taken_goes_on, add_exit(ExitKind::direct, aside));
    }
    if (!next) leave_directly(branch.end());
}

// loop, jrcxz and their like reach 127 bytes only: just over a jump.
void FlowWriter::write_counted(const Instruction& branch, bool taken_goes_on, std::size_t exit) {
    auto bytes = branch.bytes;
    bytes[branch.length - 1u] =
        static_cast<std::byte>(taken_goes_on ? Emitter::jump_length : Emitter::short_jump_length);
    a_.bytes({bytes.data(), branch.length});
    if (!taken_goes_on) a_.jump_short(Emitter::jump_length);
    w_.late([this, jump = a_.jump(), exit] {
        a_.join(jump);
        jump_to_exit(exit);
    });
}

// The guest's rcx is in the area meanwhile.
void FlowWriter::write_target(const Instruction& branch) {
    if (branch.flow == Flow::return_) {
        a_.store_area(slot_for(decoder::rcx), decoder::rcx);
        a_.pop(decoder::rcx);
        const auto& first = branch.operands()[0];
        if (first.kind == OperandKind::immediate)
            a_.lea(decoder::rsp, decoder::rsp, none, 1,
                   static_cast<std::int32_t>(first.immediate & 0xffff));
        return;
    }
    load_target(branch);
    if (branch.flow == Flow::indirect_call) push_return_address(branch);
}

void FlowWriter::load_target(const Instruction& branch) {
    const auto& operand = branch.operands()[0];
    if (mentions(operand, stream_register)) w_.to_guest();
    a_.store_area(slot_for(decoder::rcx), decoder::rcx);
    w_.mark(decoder::rcx);
    if (operand.kind == OperandKind::reg) {
        if (operand.reg.number != decoder::rcx) a_.move(decoder::rcx, operand.reg.number);
        return;
    }
    const auto& memory = operand.memory;
    if (memory.base && !operand.memory.is_rip_relative() && memory.address_bits == 64 &&
        memory.segment != Segment::gs) {
        if (memory.segment == Segment::fs) a_.raw(fs_prefix);
        a_.load_at(decoder::rcx, memory.base.number, memory.index ? memory.index.number : none,
                   memory.scale, static_cast<std::int32_t>(memory.displacement));
        return;
    }
    w_.address(decoder::rcx, branch, operand, true);
    w_.mark(decoder::rcx);
    if (memory.segment == Segment::fs) a_.raw(fs_prefix);
    a_.load_from(decoder::rcx, decoder::rcx, 0, 8);
}

// The unit goes on where the branch usually goes, and looks up any other target.
void FlowWriter::expect_target(Address expected) {
    const auto exit = add_exit(ExitKind::indirect, {});
    a_.store_area(offsetof(ThreadArea, rdx), decoder::rdx);
    w_.move_negative(decoder::rdx, expected);
    a_.lea(decoder::rcx, decoder::rcx, decoder::rdx, 1, 0);
    a_.jump_if_rcx_is_zero(Emitter::jump_length);
    w_.late([this, exit, expected, jump = a_.jump()] {
        a_.join(jump);
        w_.move_address(decoder::rdx, expected);
        a_.lea(decoder::rcx, decoder::rcx, decoder::rdx, 1, 0);
        w_.write_id(exits_[exit]);
        look_up();
    });
    a_.load_area(decoder::rdx, offsetof(ThreadArea, rdx));
    a_.load_area(decoder::rcx, slot_for(decoder::rcx));
    w_.mark();
}

// ---- Exits

std::size_t FlowWriter::add_exit(ExitKind kind, Address target) {
    exits_.push_back({.kind = kind, .segment = directory_.segment_of(executed_), .target = target});
    return exits_.size() - 1;
}

void FlowWriter::jump_to_exit(std::size_t exit) {
    w_.write_id(exits_[exit]);
    jump_when_connected(exit);
}

void FlowWriter::jump_when_connected(std::size_t exit) {
    auto* const jump = exits_[exit].jump = a_.patchable_jump();
    const auto number = w_.unit().first_exit + static_cast<std::uint32_t>(exit);
    Emitter::join(jump, code_that_asks_for_link(w_.arena(), number, exits_[exit].target));
}

void FlowWriter::leave_directly(Address target) {
    jump_to_exit(add_exit(ExitKind::direct, target));
    w_.leave();
}

void FlowWriter::leave_indirectly() {
    w_.mark(decoder::rcx);
    const auto exit = add_exit(ExitKind::indirect, {});
    w_.write_id(exits_[exit]);
    a_.store_area(offsetof(ThreadArea, rdx), decoder::rdx);
    look_up();
    w_.leave();
}

// The target is in rcx; the guest's rcx and rdx are in the area.
void FlowWriter::look_up() {
    a_.zero_extend_word(decoder::rdx, decoder::rcx);
    a_.jump_through_table(tables_ + static_cast<std::uint32_t>(
                                        static_cast<std::size_t>(w_.unit().version) * table_size),
                          decoder::rdx);
}

// If the profiler sees all system calls, it takes the thread from there, and the code that follows
// runs only if the profiler has died.
void FlowWriter::leave_with_system_call(Address next) {
    const auto exit = add_exit(ExitKind::system_call, next);
    w_.write_id(exits_[exit]);
    if (const auto* const call = w_.fixed_code().call) {
        a_.store_area(slot_for(decoder::rcx), decoder::rcx);
        w_.store_pc(next - ptrace::system_call_length);
        auto* const behind = a_.load_place(decoder::rcx);
        w_.jump_to_fixed(call);
        a_.join(behind);
    } else {
        a_.system_call();
    }
    w_.move_address(decoder::rcx, next);
    if (w_.fixed_code().is_for_bursts()) note_end_of_call();
    jump_when_connected(exit);
    w_.leave();
}

// The guest's flags stay as they are.
void FlowWriter::note_end_of_call() {
    using namespace decoder;
    a_.store_area(offsetof(ThreadArea, rcx), rcx);
    a_.store_area(offsetof(ThreadArea, rax), rax);
    a_.store_area(offsetof(ThreadArea, rdx), rdx);
    w_.mark(Mark::timing);
    a_.read_clock();
    const auto add = [&](HostRegister half, std::size_t slot) {
        a_.load_area(rcx, slot);
        a_.lea(half, half, rcx, 1, 0);
        a_.store_area(slot, half);
    };
    add(rax, offsetof(ThreadArea, calls_over_low));
    add(rdx, offsetof(ThreadArea, calls_over_high));
    a_.load_area(rdx, offsetof(ThreadArea, rdx));
    a_.load_area(rax, offsetof(ThreadArea, rax));
    a_.load_area(rcx, offsetof(ThreadArea, rcx));
    w_.mark();
}

}  // namespace shadowprof::emu::translator
