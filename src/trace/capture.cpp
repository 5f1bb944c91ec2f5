#include "trace/capture.h"

#include <algorithm>

#include "base/error.h"
#include "trace/divisor.h"

namespace shadowprof::trace {

namespace {

using decoder::Flow;
using decoder::Instruction;
using decoder::MemoryUse;
using decoder::Operand;
using decoder::OperandKind;
using decoder::RegisterKind;
using decoder::Visibility;

constexpr std::uint8_t most_bits = 64, error_bits = most_bits;

std::uint8_t slot_bits(std::uint16_t bits) {
    return static_cast<std::uint8_t>(std::min<std::uint16_t>(bits, most_bits));
}

bool is_explicit_access(const Operand& operand) {
    return operand.kind == OperandKind::memory && operand.visibility != Visibility::hidden &&
           operand.memory.use == MemoryUse::access;
}

// Hidden rsp is the stack pointer of push, pop, call and their like. Of string instructions the
// hidden pointers and counter move by rule; what lods loads is data.
bool says_nothing_about_data(const Instruction& instruction, const Operand& operand) {
    if (operand.visibility != Visibility::hidden) return false;
    if (operand.reg.is_general(decoder::rsp)) return true;
    return decoder::is_string(instruction.mnemonic) && !operand.reg.is_general(decoder::rax);
}

std::uint8_t destination_bits(const Instruction& instruction, const Operand& operand) {
    switch (operand.reg.kind) {
        case RegisterKind::general:
            return slot_bits(operand.reg.bits);
        case RegisterKind::mask:
            return slot_bits(operand.reg.bits);
        case RegisterKind::vector:
            return instruction.scalar_bits ? instruction.scalar_bits : slot_bits(operand.reg.bits);
        default:
            return 0;
    }
}

}  // namespace

bool is_certain_load(const Operand& operand) {
    return is_explicit_access(operand) && operand.reads && !operand.conditional_read;
}

// One at a fixed place is a constant already.
bool is_divisor_in_memory(const Instruction& instruction, const Operand& operand) {
    using decoder::Mnemonic;
    const bool divides =
        instruction.mnemonic == Mnemonic::div || instruction.mnemonic == Mnemonic::idiv;
    return divides && is_certain_load(operand) && !operand.memory.is_rip_relative();
}

std::vector<Slot> slots_of(std::span<const Instruction> instructions, CapturePlan of_all,
                           const Location& place) {
    std::vector<Slot> slots;
    if (of_all.empty()) return slots;
    SHADOWPROF_ASSERT(instructions.size() <= 256, std::to_string(instructions.size()));

    for (std::size_t i = 0; i < instructions.size(); ++i) {
        const auto& instruction = instructions[i];
        if (instruction.flow == Flow::trap) continue;
        if (i == 0 && of_all.functions() && of_all.functions()->wants_arguments_at(place))
            for (const auto number : argument_registers)
                slots.push_back({.kind = Capture::arguments, .operand = number, .bits = most_bits});
        auto plan = of_all;
        bool with_error = i == 0 && of_all.has(Capture::error_before);
        std::uint16_t registers = 0;
        if (i == 0 && of_all.has(Capture::stack_before)) registers = 1u << decoder::rsp;
        if (const auto* choice = of_all.choice()) {
            const auto wanted =
                choice->of(instruction, place + (instruction.address - instructions[0].address));
            plan = plan | wanted.captures;
            with_error = with_error || wanted.captures.has(Capture::error_before);
            registers |= wanted.registers;
        }
        for (std::uint8_t number = 0; number < 16; ++number)
            if (registers >> number & 1)
                slots.push_back({.kind = Capture::register_before,
                                 .instruction = static_cast<std::uint8_t>(i),
                                 .operand = number,
                                 .bits = most_bits});
        if (with_error)
            slots.push_back({.kind = Capture::error_before,
                             .instruction = static_cast<std::uint8_t>(i),
                             .bits = error_bits});
        if (instruction.flow == Flow::system_call) continue;
        const auto operands = instruction.operands();

        const auto add_where = [&](Capture kind, auto bits_of) {
            if (!plan.has(kind)) return;
            for (std::size_t o = 0; o < operands.size(); ++o)
                if (const std::uint8_t bits = bits_of(operands[o]))
                    slots.push_back({.kind = kind,
                                     .instruction = static_cast<std::uint8_t>(i),
                                     .operand = static_cast<std::uint8_t>(o),
                                     .bits = bits});
        };
        add_where(Capture::memory_addresses, [](const Operand& operand) {
            return is_explicit_access(operand) ? most_bits : std::uint8_t{0};
        });
        const bool all_loaded = plan.has(Capture::loaded_values);
        if (plan.has(Capture::destination_values)) plan = plan | Capture::loaded_values;
        add_where(Capture::loaded_values, [&](const Operand& operand) {
            const bool captured =
                all_loaded ? is_certain_load(operand) : is_divisor_in_memory(instruction, operand);
            return captured ? slot_bits(operand.bits) : std::uint8_t{0};
        });
        add_where(Capture::destination_values, [&](const Operand& operand) {
            const bool captured = operand.kind == OperandKind::reg && operand.writes &&
                                  !says_nothing_about_data(instruction, operand);
            return captured ? destination_bits(instruction, operand) : std::uint8_t{0};
        });
    }
    return slots;
}

}  // namespace shadowprof::trace
