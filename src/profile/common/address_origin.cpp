#include "profile/common/address_origin.h"

#include <optional>

namespace shadowprof::profile {

namespace {

using decoder::Instruction;
using decoder::OperandKind;
using decoder::RegisterKind;
using Origin = BlockOrigins::Origin;
using Registers = std::array<Origin, 16>;

Origin of(const decoder::Register& reg, const Registers& registers) {
    // The stack pointer derives from nothing that says something about data.
    const bool tells = reg.kind == RegisterKind::general && reg.number != decoder::rsp;
    return tells ? registers[reg.number] : Origin{};
}

// Of what an instruction computes from its registers.
Origin of_sources(const Instruction& instruction, const Registers& registers) {
    Origin best;
    std::optional<decoder::Register> read;
    for (const auto& operand : instruction.operands()) {
        if (operand.kind == OperandKind::memory) {
            for (const auto& part : {operand.memory.base, operand.memory.index})
                if (best.kind != Origin::Kind::load) {
                    const auto origin = of(part, registers);
                    if (origin.kind != Origin::Kind::none) best = origin;
                }
            continue;
        }
        if (operand.kind != OperandKind::reg || !operand.reads) continue;
        // xor eax, eax
        if (read && *read == operand.reg) return {};
        read = operand.reg;
        const auto origin = of(operand.reg, registers);
        if (best.kind == Origin::Kind::none || origin.kind == Origin::Kind::load) best = origin;
    }
    return best;
}

}  // namespace

BlockOrigins::BlockOrigins(const trace::Block& block, std::span<const trace::Slot> accesses) {
    Registers registers;
    for (std::uint8_t r = 0; r < registers.size(); ++r) registers[r] = {Origin::Kind::reg, r};
    std::size_t next = 0;
    for (std::size_t i = 0; i < block.instructions.size(); ++i) {
        const auto& instruction = block.instructions[i];
        std::optional<Origin> loaded;
        for (; next < accesses.size() && accesses[next].instruction == i; ++next) {
            const auto& operand = instruction.operands()[accesses[next].operand];
            of_access.push_back(
                {of(operand.memory.base, registers), of(operand.memory.index, registers)});
            if (trace::is_certain_load(operand))
                loaded = Origin{Origin::Kind::load, static_cast<std::uint8_t>(next)};
        }
        const auto result = loaded ? *loaded : of_sources(instruction, registers);
        for (const auto& operand : instruction.operands()) {
            const bool is_result = operand.kind == OperandKind::reg && operand.writes &&
                                   operand.reg.kind == RegisterKind::general;
            if (is_result) registers[operand.reg.number] = result;
        }
    }
    for (std::uint8_t r = 0; r < registers.size(); ++r)
        if (registers[r] != Origin{Origin::Kind::reg, r}) changes.push_back({r, registers[r]});
}

}  // namespace shadowprof::profile
