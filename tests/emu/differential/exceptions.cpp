#include "exceptions.h"

#include <algorithm>

#include "decoder/decoder.h"

namespace shadowprof::differential {

using decoder::Instruction;
using decoder::Operand;
using decoder::OperandKind;
using decoder::RegisterKind;

const Exception* exception_for(const Instruction& i) {
    const auto name = decoder::mnemonic_name(i);
    for (const auto& exception : exceptions)
        if (exception.name == name) return &exception;
    return nullptr;
}

bool loads_segment_register(const Instruction& i) {
    const auto operands = i.operands();
    return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.kind == OperandKind::reg && operand.writes &&
               operand.reg.kind == RegisterKind::segment;
    });
}

bool saves_to_narrow_segment(const Instruction& i) {
    const auto name = decoder::mnemonic_name(i);
    if (!name.starts_with("xsave") && !name.starts_with("xrstor")) return false;
    const auto& m = i.operands()[0].memory;
    return m.address_bits == 32 &&
           (m.segment == decoder::Segment::fs || m.segment == decoder::Segment::gs);
}

bool tells_what_is_in_use(const Instruction& i) {
    const auto name = decoder::mnemonic_name(i);
    return name.starts_with("xsave") || name == "xgetbv";
}

bool tells_processor(const Instruction& i) {
    return decoder::mnemonic_name(i) == "rdpid";
}

bool is_rip_relative(const Instruction& i) {
    const auto operands = i.operands();
    return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.memory.base.kind == RegisterKind::instruction_pointer;
    });
}

bool is_x87_instruction(const Instruction& i) {
    const auto operands = i.operands();
    return decoder::isa_extension_name(i) == "X87" ||
           std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
               return operand.reg.kind == RegisterKind::x87;
           });
}

bool saves_x87_pointers(const Instruction& i) {
    const auto name = decoder::mnemonic_name(i);
    return name.starts_with("xsave") || name.starts_with("fxsave") || name == "fnsave" ||
           name == "fnstenv";
}

bool may_be_rewritten(const Instruction& i) {
    const auto operands = i.operands();
    return is_rip_relative(i) ||
           std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
               return operand.kind == OperandKind::memory &&
                      operand.memory.segment == decoder::Segment::gs;
           });
}

}  // namespace shadowprof::differential
