// The decoder library describes instructions by tables. Where they leave out facts that a profiler
// needs, or differ from what processors do, they are corrected here, one rule each, so that no
// other room needs to know of it.
#include "decoder/corrections.h"

#include <algorithm>

namespace shadowprof::decoder {
namespace {

using Operands = std::span<Operand>;

// Wide NOPs name operands but use none of them; prefetches of bad addresses do nothing.
void touches_nothing(Operands operands) {
    for (auto& operand : operands) {
        operand.reads = operand.writes = operand.conditional = operand.conditional_read = false;
        if (operand.kind == OperandKind::memory) operand.memory.use = MemoryUse::address_only;
    }
}

// Some part of the memory must be there, but not necessarily its beginning.
void may_read_nothing(Operands operands) {
    auto& memory = operands[0];
    memory.conditional_read = memory.reads;
    memory.conditional = true;
}

void destination_may_stay(Operands operands) {
    operands[0].conditional = true;
}

void index_is_al(Operands operands) {
    const Register al{.kind = RegisterKind::general, .number = rax, .high_byte = false, .bits = 8};
    for (auto& operand : operands) {
        if (operand.kind == OperandKind::memory) operand.memory.index = al;
        if (operand.reg == al) operand.reads = true;
    }
}

// Masked-off elements are neither read nor written, so their memory need not exist.
void memory_is_masked(Operands operands) {
    for (auto& operand : operands) {
        if (operand.kind != OperandKind::memory) continue;
        operand.conditional = true;
        operand.conditional_read = operand.reads;
    }
}

// Tiles are loaded and stored row by row, the index being the distance between rows.
void memory_is_rows(Operands operands) {
    for (auto& operand : operands)
        if (operand.kind == OperandKind::memory) operand.memory.use = MemoryUse::gather;
}

// bt with memory and a register counts bits from the address on, forwards or backwards, so it may
// touch memory elsewhere than where its operand points.
void memory_may_be_bit_string(Operands operands) {
    auto& first = operands[0];
    if (first.kind == OperandKind::memory && operands[1].kind == OperandKind::reg)
        first.conditional = first.conditional_read = true;
}

// To a 16-bit register movsxd moves 16 bits, of which AMD's processors read 32.
void source_is_as_wide_as_destination(Operands operands) {
    if (operands[0].bits != 16 || __builtin_cpu_is("amd")) return;
    auto& source = operands[1];
    source.bits = source.element_bits = 16;
    if (source.reg) source.reg.bits = 16;
}

// A shift or rotation by zero changes no flag.
void flags_depend_on_count(Instruction& i, Operands operands) {
    const auto& count = operands[i.explicit_count - 1u];
    if (count.kind != OperandKind::immediate) {
        i.flags_conditional = true;
        return;
    }
    const auto mask = operands[0].bits == 64 ? 63u : 31u;
    if (count.immediate & mask) return;
    i.flags_written = i.flags_undefined = 0;
    for (auto& operand : operands)
        if (operand.reg.kind == RegisterKind::flags) operand.writes = operand.conditional = false;
}

void by_name(Instruction& i, Operands operands) {
    switch (i.mnemonic) {
        case Mnemonic::nop:
        case Mnemonic::prefetch:
        case Mnemonic::prefetchnta:
        case Mnemonic::prefetcht0:
        case Mnemonic::prefetcht1:
        case Mnemonic::prefetcht2:
        case Mnemonic::prefetchw:
        case Mnemonic::prefetchwt1:
        case Mnemonic::cldemote:
            return touches_nothing(operands);

        case Mnemonic::bsf:  // of zero
        case Mnemonic::bsr:
        case Mnemonic::rdsspd:  // without a shadow stack
        case Mnemonic::rdsspq:
        case Mnemonic::lar:  // of no segment
        case Mnemonic::lsl:
        // The kernel often carries this out, and leaves the upper half of the register unchanged.
        case Mnemonic::sldt:
        case Mnemonic::str:
        case Mnemonic::smsw:
            return destination_may_stay(operands);

        case Mnemonic::clflush:
        case Mnemonic::clflushopt:
        case Mnemonic::clwb:
        case Mnemonic::xsave:  // reads what was saved there, and only what is asked for
        case Mnemonic::xsave64:
        case Mnemonic::xsavec:
        case Mnemonic::xsavec64:
        case Mnemonic::xsaveopt:
        case Mnemonic::xsaveopt64:
        case Mnemonic::xrstor:
        case Mnemonic::xrstor64:
            return may_read_nothing(operands);

        case Mnemonic::xlat:
            return index_is_al(operands);

        case Mnemonic::maskmovq:
        case Mnemonic::maskmovdqu:
        case Mnemonic::vmaskmovdqu:
        case Mnemonic::vmaskmovps:
        case Mnemonic::vmaskmovpd:
        case Mnemonic::vpmaskmovd:
        case Mnemonic::vpmaskmovq:
            return memory_is_masked(operands);

        case Mnemonic::tileloadd:
        case Mnemonic::tileloaddt1:
        case Mnemonic::tilestored:
            return memory_is_rows(operands);

        case Mnemonic::bt:
        case Mnemonic::bts:
        case Mnemonic::btr:
        case Mnemonic::btc:
            return memory_may_be_bit_string(operands);

        case Mnemonic::shl:
        case Mnemonic::shr:
        case Mnemonic::sar:
        case Mnemonic::rol:
        case Mnemonic::ror:
        case Mnemonic::rcl:
        case Mnemonic::rcr:
        case Mnemonic::shld:
        case Mnemonic::shrd:
            return flags_depend_on_count(i, operands);

        case Mnemonic::movsxd:
            return source_is_as_wide_as_destination(operands);

        case Mnemonic::xchg:  // locks by nature
            i.lock = i.lock || operands[0].kind == OperandKind::memory;
            return;

        // This needs I/O privilege, which no program has by default.
        case Mnemonic::in:
        case Mnemonic::out:
        case Mnemonic::insb:
        case Mnemonic::insw:
        case Mnemonic::insd:
        case Mnemonic::outsb:
        case Mnemonic::outsw:
        case Mnemonic::outsd:
        case Mnemonic::cli:
        case Mnemonic::sti:
            i.privileged = true;
            return;

        default:
            return;
    }
}

}  // namespace

void correct(Instruction& i, std::span<Operand> operands) {
    by_name(i, operands);
    if (std::any_of(operands.begin(), operands.end(),
                    [](const Operand& operand) { return operand.is_write_mask; }))
        memory_is_masked(operands);
}

}  // namespace shadowprof::decoder
