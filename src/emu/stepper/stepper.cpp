#include "emu/stepper/stepper.h"

#include <cpuid.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/signal_bit.h"
#include "decoder/decoder.h"
#include "proc/call_facts.h"
#include "proc/process_info.h"
#include "ptrace/lost_steps.h"

namespace shadowprof::emu {

namespace {

std::uint64_t value_in_address(const ptrace::Registers& registers, const decoder::Register& reg) {
    const auto value = registers.general(reg.number);
    return reg.bits == 8 ? value & 0xff : value;  // al, of xlat
}

// Where an instruction's memory operand points, given the registers before it: the effective
// address as the processor's manual defines it. In two cases the operand alone does not say it: pop
// addresses its destination with rsp as it is after the pop, and for bt and similar instructions
// this is where the bit string begins, however far away the bit is.
Address effective_address(const decoder::Instruction& instruction, const decoder::Operand& operand,
                          const ptrace::Registers& registers) {
    const auto& memory = operand.memory;
    std::uint64_t address = static_cast<std::uint64_t>(memory.displacement);
    if (memory.is_rip_relative())
        address += instruction.end().value;
    else if (memory.base)
        address += value_in_address(registers, memory.base);
    if (memory.index) address += value_in_address(registers, memory.index) * memory.scale;
    if (instruction.mnemonic == decoder::Mnemonic::pop && memory.base.is_general(decoder::rsp) &&
        operand.visibility != decoder::Visibility::hidden)
        address += operand.bits / 8u;
    if (memory.address_bits == 32) address &= 0xffffffffu;
    if (memory.segment == decoder::Segment::fs) address += registers.raw.fs_base;
    if (memory.segment == decoder::Segment::gs) address += registers.raw.gs_base;
    return {address};
}

constexpr auto trap_signal_bit = signal_bit(SIGTRAP);

std::uint64_t low_bits(std::uint64_t value, unsigned bits) {
    return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

bool loads_trap_flag(decoder::Mnemonic m) {
    using enum decoder::Mnemonic;
    return m == popf || m == popfq || m == iret || m == iretd || m == iretq;
}

bool needs_extended_state(const decoder::Register& reg) {
    return reg.kind == decoder::RegisterKind::vector || reg.kind == decoder::RegisterKind::mask;
}

}  // namespace

Stepper::Stepper(ptrace::Tracer& tracer, ptrace::Thread& thread, GuestCode& code,
                 trace::TraceSink& sink, trace::TraceId trace, std::uint64_t most_instructions)
    : tracer_(tracer),
      thread_(thread),
      code_(code),
      recorder_(sink, trace),
      most_instructions_(most_instructions) {}

Stepper::State Stepper::begin() {
    auto registers = thread_.registers();
    if (!registers) return thread_is_gone();
    registers_ = *registers;
    return hide_trap_signal() ? go_on() : finish("SIGTRAP ignored or pending");
}

// The thread is still inside execve, whose exit is yet to be reported.
Stepper::State Stepper::begin_after_exec() {
    auto registers = thread_.registers();
    if (!registers) return thread_is_gone();
    registers_ = *registers;
    registers_.raw.rip -= ptrace::system_call_length;
    in_system_call_ = true;
    thread_.resume_to_system_call();
    return State::running;
}

Stepper::State Stepper::on_event(const ptrace::Event& event) {
    switch (event.kind) {
        case ptrace::EventKind::thread_gone:
        case ptrace::EventKind::process_gone:
            return thread_is_gone();
        case ptrace::EventKind::group_stop:
            thread_.listen();
            return State::running;
        case ptrace::EventKind::exec:
            return on_exec();
        case ptrace::EventKind::signal:
            return on_signal(event);
        case ptrace::EventKind::stepped:
            return on_stepped(event);
        case ptrace::EventKind::system_call_entry:
            thread_.resume_to_system_call();
            return State::running;
        case ptrace::EventKind::system_call_exit:
            return on_system_call_exit();
        case ptrace::EventKind::interrupted:
        case ptrace::EventKind::group_stop_ended:
        case ptrace::EventKind::thread_started:
        case ptrace::EventKind::thread_exiting:
            break;
    }
    if (in_system_call_) {
        if (end_requested_) return on_system_call_exit();
        thread_.resume_to_system_call();
        return State::running;
    }
    return go_on();
}

void Stepper::request_end(std::string reason) {
    end_requested_ = std::move(reason);
}

// Executes the next instruction, delivering a signal first.
Stepper::State Stepper::go_on(int signal) {
    if (!block_) {
        block_ = code_.block_at(registers_.rip());
        index_ = slot_ = 0;
        captured_before_ = false;
        if (!block_) {
            undelivered_signal_ = signal;
            return finish("no decodable instruction");
        }
    }
    if (end_requested_ || (most_instructions_ != 0 && instructions() >= most_instructions_)) {
        undelivered_signal_ = signal;
        return finish(end_requested_.value_or("sample size"));
    }
    const auto& instruction = block_->instructions[index_];
    if (!captured_before_) {
        values_before_instruction_ = recorder_.value_count();
        capture_before(instruction);
        captured_before_ = true;
    }
    return instruction.flow == decoder::Flow::system_call ? enter_system_call(signal)
                                                          : step_instruction(signal);
}

Stepper::State Stepper::step_instruction(int signal) {
    const bool loses_step = block_->instructions[index_].mnemonic == decoder::Mnemonic::cpuid &&
                            ptrace::loses_step_over_cpuid();
    const bool loaded_flags = std::exchange(loaded_flags_, false);
    if ((loaded_flags && signal == 0) || (loses_step && signal != 0))
        thread_.stop_again(signal);
    else if (loses_step)
        return execute_cpuid();
    else
        thread_.step(signal);
    return State::running;
}

// It is carried out here, while the thread stays stopped.
Stepper::State Stepper::execute_cpuid() {
    const auto leaf = static_cast<unsigned>(registers_.general(decoder::rax));
    const auto subleaf = static_cast<unsigned>(registers_.general(decoder::rcx));
    unsigned eax, ebx, ecx, edx;
    __cpuid_count(leaf, subleaf, eax, ebx, ecx, edx);
    registers_.set_general(decoder::rax, eax);
    registers_.set_general(decoder::rbx, ebx);
    registers_.set_general(decoder::rcx, ecx);
    registers_.set_general(decoder::rdx, edx);
    const auto& instruction = block_->instructions[index_];
    registers_.raw.rip = instruction.end().value;
    if (!thread_.set_registers(registers_)) return thread_is_gone();
    capture_after(instruction);
    complete_instruction();
    return go_on();
}

// The instruction is complete as soon as the call is entered; its effects are the kernel's.
Stepper::State Stepper::enter_system_call(int signal) {
    complete_instruction();
    in_system_call_ = true;
    restore_signal_mask();
    thread_.resume_to_system_call(signal);
    return State::running;
}

Stepper::State Stepper::on_stepped(const ptrace::Event&) {
    auto registers = thread_.registers();
    if (!registers) return thread_is_gone();
    if (std::exchange(entering_handler_, false)) {
        // The kernel stops once more when it has built the handler's frame.
        leave_block();
        recorder_.discontinuity(continuation(), code_,
                                {registers->rsp().value, registers_.rsp().value});
        in_system_call_ = false;
        registers_ = *registers;
        if (!hide_trap_signal()) return finish("SIGTRAP ignored or pending");
        return go_on();
    }
    const auto& instruction = block_->instructions[index_];
    const bool iterates =
        instruction.repeat != decoder::Repeat::none && registers->rip() == instruction.address;
    registers_ = *registers;
    if (iterates) return end_requested_ ? finish(*end_requested_) : step_instruction(0);

    using decoder::Mnemonic;
    if (instruction.mnemonic == Mnemonic::pushfq || instruction.mnemonic == Mnemonic::pushf) {
        if (auto flags = code_.memory().read_as<std::uint16_t>(registers_.rsp())) {
            const auto clean = static_cast<std::uint16_t>(*flags & ~trap_flag);
            code_.memory().write(registers_.rsp(), std::as_bytes(std::span{&clean, 1}));
        }
    }
    capture_after(instruction);
    loaded_flags_ = loads_trap_flag(instruction.mnemonic);
    complete_instruction();
    if (loaded_flags_ && registers_.steps_itself()) return finish("trap flag");
    return go_on();
}

Stepper::State Stepper::on_system_call_exit() {
    auto registers = thread_.registers();
    if (!registers) return thread_is_gone();
    const auto call = registers->raw.orig_rax;
    // The call is made again, perhaps after a signal. The instruction counts once.
    if (registers->will_call_again() ||
        (registers->in_system_call() && registers->result() == -EINTR &&
         tracer_.repair_interrupted_call(thread_))) {
        if (end_requested_) return finish(*end_requested_);
        thread_.resume_to_system_call();
        return State::running;
    }
    const auto expected = continuation();
    in_system_call_ = false;
    recorder_.look_at_state();
    registers_ = *registers;
    if (!registers_.is_64bit()) return finish("32-bit code");
    if (proc::facts_of_call(static_cast<std::int64_t>(call)).changes_mappings !=
        proc::ChangesMappings::never)
        code_.mappings_may_have_changed();
    if (registers_.rip() != expected)  // sigreturn
        recorder_.discontinuity(expected, code_, {registers_.rsp().value});
    if (registers_.steps_itself()) return finish("trap flag");  // the frame had it
    return hide_trap_signal() ? go_on() : finish("SIGTRAP ignored or pending");
}

Stepper::State Stepper::on_signal(const ptrace::Event& event) {
    const auto sets = proc::signal_sets(tracer_.pid(), thread_.tid());
    if (!sets) return thread_is_gone();
    const auto bit = signal_bit(event.signal);
    if (hidden_mask_ && event.signal == SIGTRAP) {
        // The signal was blocked and pending, and only we unblocked it. With the mask restored,
        // delivering it makes it pending again.
        restore_signal_mask();
        undelivered_signal_ = event.signal;
        return finish("SIGTRAP pending");
    }
    if (auto registers = thread_.registers()) {
        // int3 completes before its signal; a fault leaves its instruction undone.
        if (!in_system_call_ && block_ && registers->rip() != registers_.rip()) {
            if (registers->rip() == block_->instructions[index_].end()) complete_instruction();
            registers_ = *registers;
        } else if (!in_system_call_) {
            registers_ = *registers;
        }
    }
    if (!in_system_call_ && block_ && loads_trap_flag(block_->instructions[index_].mnemonic)) {
        // The step was not made, and left the trap flag set as if by the program.
        registers_.raw.eflags &= ~std::uint64_t{trap_flag};
        thread_.set_registers(registers_);
        undelivered_signal_ = event.signal;
        return finish("signal at " +
                      std::string(decoder::mnemonic_name(block_->instructions[index_])));
    }
    if (sets->caught & bit) {
        entering_handler_ = true;
        restore_signal_mask();
        thread_.step(event.signal);
        return State::running;
    }
    if (in_system_call_) {
        thread_.resume_to_system_call(event.signal);
        return State::running;
    }
    // The signal is ignored, stops the process, or kills it; what happens next comes as an event.
    return go_on(event.signal);
}

Stepper::State Stepper::on_exec() {
    recorder_.discontinuity(continuation(), code_, {trace::StackMove::new_stack});
    code_.forget_everything();
    hidden_mask_.reset();
    return begin_after_exec();
}

Stepper::State Stepper::finish(std::string reason) {
    if (in_system_call_) {
        if (auto registers = thread_.registers()) registers_ = *registers;
        in_system_call_ = false;
    }
    leave_block();
    restore_signal_mask();
    recorder_.end(std::move(reason), registers_.rip(), code_.place_of(registers_.rip()), false);
    return State::finished;
}

Stepper::State Stepper::thread_is_gone() {
    leave_block();
    recorder_.end("exit", Address{}, {}, true);
    return State::finished;
}

void Stepper::give_up(std::string reason) {
    leave_block();
    recorder_.end(std::move(reason), continuation(), code_.place_of(continuation()), false);
}

// Where the thread goes on unless a signal intervenes. In a system call the registers are kept as
// they were before it.
Address Stepper::continuation() const {
    return in_system_call_ ? registers_.rip() + ptrace::system_call_length : registers_.rip();
}

void Stepper::capture_before(const decoder::Instruction& instruction) {
    for (; slot_ < block_->slots.size(); ++slot_) {
        const auto& slot = block_->slots[slot_];
        if (slot.instruction != index_ || slot.kind == trace::Capture::destination_values) return;
        if (slot.kind == trace::Capture::arguments ||
            slot.kind == trace::Capture::register_before) {
            recorder_.value(registers_.general(slot.operand));
            continue;
        }
        if (slot.kind == trace::Capture::error_before) {
            recorder_.value(error_at(slot.displacement));
            continue;
        }
        const auto& operand = instruction.operands()[slot.operand];
        const auto address = effective_address(instruction, operand, registers_);
        if (slot.kind == trace::Capture::memory_addresses) {
            recorder_.value(address.value);
        } else {
            std::uint64_t loaded = 0;
            code_.memory().read(
                address, std::as_writable_bytes(std::span{&loaded, 1}).first(slot.bits / 8u));
            recorder_.value(loaded);
        }
    }
}

// See Capture::error_before.
std::uint64_t Stepper::error_at(std::int32_t displacement) const {
    const auto fs = registers_.raw.fs_base;
    if (fs == 0 || displacement == 0) return 0;
    const auto error = code_.memory().read_as<std::uint32_t>(
        Address{fs + static_cast<std::uint64_t>(std::int64_t{displacement})});
    return error ? std::uint64_t{*error} + 1 : 0;
}

void Stepper::capture_after(const decoder::Instruction& instruction) {
    std::optional<ptrace::ExtendedState> extended;
    for (; slot_ < block_->slots.size() && block_->slots[slot_].instruction == index_; ++slot_) {
        const auto& slot = block_->slots[slot_];
        const auto& reg = instruction.operands()[slot.operand].reg;
        std::uint64_t value = 0;
        if (needs_extended_state(reg)) {
            if (!extended) extended = thread_.extended_state();
            if (extended)
                value = reg.kind == decoder::RegisterKind::mask ? extended->mask(reg.number)
                                                                : extended->vector(reg.number)[0];
        } else {
            value = registers_.general(reg.number) >> (reg.high_byte ? 8 : 0);
        }
        recorder_.value(low_bits(value, slot.bits));
    }
}

void Stepper::complete_instruction() {
    ++index_;
    captured_before_ = false;
    if (index_ < block_->instructions.size()) return;
    recorder_.block(*block_);
    block_ = nullptr;
    index_ = slot_ = 0;
}

void Stepper::leave_block() {
    if (!block_) return;
    if (captured_before_) recorder_.drop_values_after(values_before_instruction_);
    if (index_ > 0) recorder_.block(code_.cut(*block_, index_));
    block_ = nullptr;
    index_ = slot_ = 0;
    captured_before_ = false;
}

bool Stepper::hide_trap_signal() {
    const auto sets = proc::signal_sets(tracer_.pid(), thread_.tid());
    // One that is pending would be taken for the end of a step.
    if (sets && ((sets->ignored | sets->pending) & trap_signal_bit)) return false;
    const auto mask = thread_.signal_mask();
    if (mask && (*mask & trap_signal_bit) && thread_.set_signal_mask(*mask & ~trap_signal_bit))
        hidden_mask_ = mask;
    return true;
}

void Stepper::restore_signal_mask() {
    if (hidden_mask_) thread_.set_signal_mask(*std::exchange(hidden_mask_, std::nullopt));
}

}  // namespace shadowprof::emu
