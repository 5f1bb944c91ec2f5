// The decoder library describes instructions by tables. Where they leave out facts that a profiler
// needs, or differ from what processors do, they are corrected here, one rule each, so that no
// other room needs to know of it.
#include "decoder/corrections.h"

#include <algorithm>

#include "decoder/by_mnemonic.h"

namespace shadowprof::decoder {
namespace {

using Operands = std::span<Operand>;

// Wide NOPs name operands but use none of them; prefetches of bad addresses do nothing.
void touches_nothing(Instruction&, Operands operands) {
    for (auto& operand : operands) {
        operand.reads = operand.writes = operand.conditional = operand.conditional_read = false;
        if (operand.kind == OperandKind::memory) operand.memory.use = MemoryUse::address_only;
    }
}

// Some part of the memory must be there, but not necessarily its beginning.
void may_read_nothing(Instruction&, Operands operands) {
    auto& memory = operands[0];
    memory.conditional_read = memory.reads;
    memory.conditional = true;
}

void destination_may_stay(Instruction&, Operands operands) {
    operands[0].conditional = true;
}

void index_is_al(Instruction&, Operands operands) {
    const Register al{.kind = RegisterKind::general, .number = rax, .high_byte = false, .bits = 8};
    for (auto& operand : operands) {
        if (operand.kind == OperandKind::memory) operand.memory.index = al;
        if (operand.reg == al) operand.reads = true;
    }
}

// Masked-off elements are neither read nor written, so their memory need not exist.
void memory_is_masked(Instruction&, Operands operands) {
    for (auto& operand : operands) {
        if (operand.kind != OperandKind::memory) continue;
        operand.conditional = true;
        operand.conditional_read = operand.reads;
    }
}

// Tiles are loaded and stored row by row, the index being the distance between rows.
void memory_is_rows(Instruction&, Operands operands) {
    for (auto& operand : operands)
        if (operand.kind == OperandKind::memory) operand.memory.use = MemoryUse::gather;
}

// bt with memory and a register counts bits from the address on, forwards or backwards, so it may
// touch memory elsewhere than where its operand points.
void memory_may_be_bit_string(Instruction&, Operands operands) {
    auto& first = operands[0];
    if (first.kind == OperandKind::memory && operands[1].kind == OperandKind::reg)
        first.conditional = first.conditional_read = true;
}

// To a 16-bit register movsxd moves 16 bits, of which AMD's processors read 32.
void source_is_as_wide_as_destination(Instruction&, Operands operands) {
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

void locks_by_nature(Instruction& i, Operands operands) {
    i.lock = i.lock || operands[0].kind == OperandKind::memory;
}

// This needs I/O privilege, which no program has by default.
void is_privileged(Instruction& i, Operands) {
    i.privileged = true;
}

void is_as_described(Instruction&, Operands) {}

using Correction = void (*)(Instruction&, Operands);
using enum Mnemonic;

constexpr ByMnemonic<Correction> corrections{
    is_as_described,
    {{touches_nothing,
      {nop, prefetch, prefetchnta, prefetcht0, prefetcht1, prefetcht2, prefetchw, prefetchwt1,
       cldemote}},
     // Of zero; without a shadow stack; of no segment; and the last three the kernel often carries
     // out, and leaves the upper half of the register unchanged.
     {destination_may_stay, {bsf, bsr, rdsspd, rdsspq, lar, lsl, sldt, str, smsw}},
     // xsave and xrstor read what was saved there, and only what is asked for.
     {may_read_nothing,
      {clflush, clflushopt, clwb, xsave, xsave64, xsavec, xsavec64, xsaveopt, xsaveopt64, xrstor,
       xrstor64}},
     {index_is_al, {xlat}},
     {memory_is_masked,
      {maskmovq, maskmovdqu, vmaskmovdqu, vmaskmovps, vmaskmovpd, vpmaskmovd, vpmaskmovq}},
     {memory_is_rows, {tileloadd, tileloaddt1, tilestored}},
     {memory_may_be_bit_string, {bt, bts, btr, btc}},
     {flags_depend_on_count, {shl, shr, sar, rol, ror, rcl, rcr, shld, shrd}},
     {source_is_as_wide_as_destination, {movsxd}},
     {locks_by_nature, {xchg}},
     {is_privileged, {in, out, insb, insw, insd, outsb, outsw, outsd, cli, sti}}}};

}  // namespace

void correct(Instruction& i, std::span<Operand> operands) {
    corrections[i.mnemonic](i, operands);
    if (std::any_of(operands.begin(), operands.end(),
                    [](const Operand& operand) { return operand.is_write_mask; }))
        memory_is_masked(i, operands);
}

}  // namespace shadowprof::decoder
