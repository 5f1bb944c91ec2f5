// The decoder library describes instructions by tables. Where those leave out what a profiler must
// know, or differ from what processors do, the differences are put right here, one rule each, so
// that nobody above this room needs to know of them.
#include "decoder/corrections.h"

#include <algorithm>
#include <string_view>

#include "decoder/decoder.h"

namespace shadowprof::decoder {
namespace {

std::span<Operand> operands_of(Instruction& i) {
    return {i.operand_storage.data(), i.operand_count};
}

bool is_one_of(Mnemonic m, std::initializer_list<Mnemonic> set) {
    return std::find(set.begin(), set.end(), m) != set.end();
}

bool is_prefetch(Mnemonic m) {
    using enum Mnemonic;
    return is_one_of(m, {prefetch, prefetchnta, prefetcht0, prefetcht1, prefetcht2, prefetchw,
                         prefetchwt1, cldemote});
}

// Wide NOPs name operands and use none of them; prefetches of bad addresses do nothing.
void hints_touch_nothing(Instruction& i) {
    if (i.mnemonic != Mnemonic::nop && !is_prefetch(i.mnemonic)) return;
    for (auto& operand : operands_of(i)) {
        operand.reads = operand.writes = operand.conditional = operand.conditional_read = false;
        if (operand.kind == OperandKind::memory) operand.memory.use = MemoryUse::address_only;
    }
}

// bsf and bsr of zero leave the destination alone; rdssp does while there is no shadow stack.
void destinations_that_may_stay(Instruction& i) {
    using enum Mnemonic;
    if (is_one_of(i.mnemonic, {bsf, bsr, rdsspd, rdsspq})) i.operand_storage[0].conditional = true;
}

// xlat's index is al.
void index_of_xlat(Instruction& i) {
    if (i.mnemonic != Mnemonic::xlat) return;
    const Register al{.kind = RegisterKind::general, .number = rax, .high_byte = false, .bits = 8};
    for (auto& operand : operands_of(i)) {
        if (operand.kind == OperandKind::memory) operand.memory.index = al;
        if (operand.reg == al) operand.reads = true;
    }
}

// Masked-off elements are not read, so their memory need not exist.
void masked_memory(Instruction& i) {
    const auto name = mnemonic_name(i);
    const bool always_masked = name.starts_with("vmaskmov") || name.starts_with("vpmaskmov") ||
                               name.starts_with("maskmov");
    const auto all = i.operands();
    const bool by_mask_register = std::any_of(
        all.begin(), all.end(), [](const Operand& operand) { return operand.is_write_mask; });
    if (!always_masked && !by_mask_register) return;
    for (auto& operand : operands_of(i)) {
        if (operand.kind != OperandKind::memory) continue;
        operand.conditional = true;
        operand.conditional_read = operand.reads;
    }
}

// Tiles are loaded and stored row by row, the index being the distance between rows.
void rows_of_tiles(Instruction& i) {
    const auto name = mnemonic_name(i);
    if (!name.starts_with("tileload") && !name.starts_with("tilestore")) return;
    for (auto& operand : operands_of(i))
        if (operand.kind == OperandKind::memory) operand.memory.use = MemoryUse::gather;
}

// bt with memory and a register counts bits from the address on, forwards or backwards: what it
// touches is not where its operand points.
void bit_strings(Instruction& i) {
    using enum Mnemonic;
    if (!is_one_of(i.mnemonic, {bt, bts, btr, btc})) return;
    auto& first = i.operand_storage[0];
    if (first.kind == OperandKind::memory && i.operand_storage[1].kind == OperandKind::reg)
        first.conditional = first.conditional_read = true;
}

// A shift or rotation by zero changes no flag.
void shifts_by_zero(Instruction& i) {
    using enum Mnemonic;
    if (!is_one_of(i.mnemonic, {shl, shr, sar, rol, ror, rcl, rcr, shld, shrd})) return;
    const auto& count = i.operand_storage[i.explicit_count - 1u];
    if (count.kind != OperandKind::immediate) {
        i.flags_conditional = true;
        return;
    }
    const auto mask = i.operand_storage[0].bits == 64 ? 63u : 31u;
    if (count.immediate & mask) return;
    i.flags_written = i.flags_undefined = 0;
    for (auto& operand : operands_of(i))
        if (operand.reg.kind == RegisterKind::flags) operand.writes = operand.conditional = false;
}

void implied_lock(Instruction& i) {
    if (i.mnemonic == Mnemonic::xchg && i.operand_storage[0].kind == OperandKind::memory)
        i.lock = true;
}

// Port and interrupt-flag instructions are allowed by I/O privilege, which no program has by
// default.
void input_and_output(Instruction& i) {
    using enum Mnemonic;
    if (is_one_of(i.mnemonic, {in, out, insb, insw, insd, outsb, outsw, outsd, cli, sti}))
        i.privileged = true;
}

}  // namespace

void correct(Instruction& i) {
    hints_touch_nothing(i);
    destinations_that_may_stay(i);
    index_of_xlat(i);
    masked_memory(i);
    rows_of_tiles(i);
    bit_strings(i);
    shifts_by_zero(i);
    implied_lock(i);
    input_and_output(i);
}

}  // namespace shadowprof::decoder
