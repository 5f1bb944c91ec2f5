// Instructions that only compute: the host executes them (see block_compiler.h).
#include <algorithm>

#include "emu/interpreter/block_compiler.h"
#include "emu/interpreter/extended_helpers.h"
#include "emu/interpreter/reencode.h"

namespace shadowprof::emu {

namespace {

using decoder::Instruction;
using decoder::MemoryUse;
using decoder::Mnemonic;
using decoder::Operand;
using decoder::OperandKind;
using decoder::rax, decoder::rbx, decoder::rdi, decoder::rsp;
using decoder::RegisterKind;

// These instructions write all of their destination, always.
bool replaces_destination(const Instruction& i, const Operand& operand) {
    using enum Mnemonic;
    switch (i.mnemonic) {
        case mov:
        case movzx:
        case movsx:
        case movsxd:
            return operand.bits >= 32;
        default:
            return false;
    }
}

// The undefined flags of these (adjust) do not depend on what they were before.
bool is_logical(Mnemonic m) {
    using enum Mnemonic;
    return m == and_ || m == or_ || m == xor_ || m == test;
}

const Operand* accessed_memory(const Instruction& i) {
    for (const auto& operand : i.operands())
        if (operand.kind == OperandKind::memory && operand.memory.use == MemoryUse::access)
            return &operand;
    return nullptr;
}

bool has_memory_without_access(const Instruction& i) {
    const auto operands = i.operands();
    return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.kind == OperandKind::memory && operand.memory.use != MemoryUse::access;
    });
}

// Loading a segment register would change the profiler's own segments.
bool writes_segment_register(const Instruction& i) {
    const auto operands = i.operands();
    return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.kind == OperandKind::reg && operand.writes &&
               operand.reg.kind == RegisterKind::segment;
    });
}

// How many bytes from its address on an instruction reads or writes.
unsigned touched_size(const Instruction& i, const Operand& memory) {
    using enum Mnemonic;
    switch (i.mnemonic) {
        case clflush:
        case clflushopt:
        case clwb:  // the cache line around the address
            return 1;
        default:
            return memory.bits / 8u;
    }
}

bool touches_tiles_or_bounds(const Instruction& i) {
    const auto operands = i.operands();
    return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.kind == OperandKind::reg && operand.reg.kind == RegisterKind::other &&
               operand.visibility != decoder::Visibility::hidden;
    });
}

}  // namespace

BlockCompiler::Uses BlockCompiler::uses_of(const Instruction& instruction) {
    Uses uses;
    for (const auto& operand : instruction.operands()) {
        if (operand.kind != OperandKind::reg || operand.reg.kind != RegisterKind::general) continue;
        const auto reg = bit(operand.reg.number);
        if (operand.writes) uses.written |= reg;
        if (operand.reads || (operand.writes && !replaces_destination(instruction, operand)))
            uses.loaded |= reg;
    }
    return uses;
}

bool BlockCompiler::needs_flags(const Instruction& i) {
    const auto written = i.flags_written & decoder::status_flags;
    if (i.flags_read & decoder::status_flags) return true;
    if (!written) return false;
    return written != decoder::status_flags || i.flags_conditional ||
           (i.flags_undefined && !is_logical(i.mnemonic)) || i.mnemonic == Mnemonic::other;
}

void BlockCompiler::computing(std::size_t index) {
    const auto& original = at(index);
    const auto* memory = accessed_memory(original);
    if (memory && !memory->memory.base && !memory->memory.index &&
        original.mnemonic == Mnemonic::mov && !host_encoding(original, rbx))
        return absolute_move(index);
    if (has_memory_without_access(original)) {
        const bool gathers = std::any_of(original.operands().begin(), original.operands().end(),
                                         [](const Operand& operand) {
                                             return operand.kind == OperandKind::memory &&
                                                    operand.memory.use == MemoryUse::gather;
                                         });
        return gathers ? gather_or_scatter(index) : capture_before_helper(index);
    }
    if (writes_segment_register(original) || touches_tiles_or_bounds(original))
        return unsupported(index);

    // fnstenv and fnsave store the unit's pointers. fldcw and fnclex change the state that shows
    // whether the pointers are those of the last instruction.
    const auto x87 = x87_opcode(original);
    if (x87 && (x87->changes_exceptions() || (memory && memory->writes && memory->bits > 80))) {
        save_flags();
        call_ordinary(restore_x87_pointers, 0);
    }

    const auto uses = uses_of(original);
    reserved_ = uses.all() | bit(rax);
    auto in_address = Registers{0};
    if (memory) {
        if (memory->memory.base.kind == RegisterKind::general)
            in_address |= bit(memory->memory.base.number);
        if (memory->memory.index) in_address |= bit(memory->memory.index.number);
    }
    auto stack_pointer = HostAssembler::none;
    std::optional<Instruction> replaced;
    if (has_explicit_stack_pointer(original)) {
        // One of rcx, rdx, rbx, rsi, rdi: these can be encoded where rsp was.
        constexpr Registers eligible = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 6 | 1u << 7;
        stack_pointer = pick(~(eligible & ~(reserved_ | in_address)));
        replaced = without_stack_pointer(original, stack_pointer);
        if (!replaced) return unsupported(index);
        reserved_ |= bit(stack_pointer);
    }
    const auto& instruction = replaced ? *replaced : original;

    if (!memory) {
        const auto bytes = host_encoding(instruction, HostAssembler::none);
        return execute(index, *bytes, uses, stack_pointer);
    }
    const auto in_use = reserved_ | in_address;
    auto pointer = pick(in_use);
    auto bytes = host_encoding(instruction, pointer);
    if (!bytes) {
        // ah, ch, dh and bh cannot be encoded together with r8 … r15.
        pointer = pick(in_use | 0xff00u);
        bytes = host_encoding(instruction, pointer);
        if (!bytes) return unsupported(index);
    }
    const auto size = touched_size(original, *memory);
    if (size == 0 || size > 512) return unsupported(index);
    reserved_ |= bit(pointer);
    address(pointer, original, *memory);
    capture_address(index, pointer);
    touch(index, pointer, size, access_of(*memory), [=, this, bytes = *bytes] {
        capture_loaded(index, pointer);
        execute(index, bytes, uses, stack_pointer);
    });
    // The unit remembers the operand's offset in its segment for long, but the instruction only
    // until another one follows.
    using decoder::Segment;
    const auto segment = memory->memory.segment;
    if ((segment == Segment::fs || segment == Segment::gs) && x87_remembers_operand(original)) {
        save_flags();
        call_ordinary(restore_x87_pointers, 0);
    }
}

void BlockCompiler::execute(std::size_t index, const decoder::Bytes& bytes, const Uses& uses,
                            HostRegister stack_pointer) {
    const auto& instruction = at(index);
    if (needs_flags(instruction)) load_flags();
    for (HostRegister reg = 0; reg < 16; ++reg) {
        if (!(uses.all() & bit(reg))) continue;
        if (reg == rsp)
            a_.load(stack_pointer, general_at(rsp));
        else if (uses.loaded & bit(reg))
            ensure(reg);
        else
            clobber(reg);
    }
    mark(index);
    a_.bytes(bytes.view());
    for (HostRegister reg = 0; reg < 16; ++reg) {
        if (!(uses.written & bit(reg))) continue;
        a_.store(general_at(reg), reg == rsp ? stack_pointer : reg);
        if (reg != rsp) cache_.valid |= bit(reg);
    }
    if (instruction.flags_written & decoder::status_flags)
        cache_.flags_live = cache_.flags_dirty = true;
    capture_destinations(index);
}

// bt, bts, btr and btc with a register as bit offset reach beyond their operand. So the element
// that holds the bit is addressed, and the register is cut to the offset within it.
void BlockCompiler::bit_string(std::size_t index) {
    const auto& i = at(index);
    const auto& memory = i.operands()[0];
    const auto& offset = i.operands()[1];
    if (memory.kind != OperandKind::memory || offset.kind != OperandKind::reg)
        return computing(index);

    capture_before_helper(index);
    const unsigned bits = offset.bits, size = bits / 8;
    auto reg = offset.reg.number;
    auto in_use = bit(rax) | decoder::general_registers_used(i);
    std::optional<Instruction> replaced;
    if (reg == rsp) {
        constexpr Registers eligible = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 6 | 1u << 7;
        reg = pick(~(eligible & ~in_use));
        in_use |= bit(reg);
        replaced = without_stack_pointer(i, reg);
        if (!replaced) return unsupported(index);
    }
    const auto pointer = pick(in_use | bit(reg));
    const auto bytes = host_encoding(replaced ? *replaced : i, pointer);
    if (!bytes) return unsupported(index);
    in_use |= bit(pointer);
    const auto element = pick(in_use);
    save_flags();
    cache_.flags_live = false;
    address(pointer, i, memory, false);
    reserved_ = in_use | bit(reg);

    // element = (signed bit offset / bits) * size
    const auto from = general_at(offset.reg.number);
    a_.load(element, from);
    if (bits < 64) {
        a_.shift_left(element, static_cast<std::uint8_t>(64 - bits));
        a_.shift_right_signed(element, static_cast<std::uint8_t>(64 - bits));
    }
    const std::uint8_t log_bits = bits == 64 ? 6 : bits == 32 ? 5 : 4;
    a_.shift_right_signed(element, log_bits);
    a_.lea(pointer, pointer, element, size, 0, memory.memory.address_bits == 32);
    add_segment(pointer, memory.memory);
    touch(index, pointer, size, access_of(memory), [=, this, bytes = *bytes] {
        clobber(reg);
        a_.load(reg, from);
        a_.and_imm(reg, static_cast<std::int32_t>(bits - 1), false);
        a_.store(offsetof(Core, scratch), reg);
        load_flags();  // uses rax, which may be that register
        a_.load(reg, offsetof(Core, scratch));
        a_.bytes(bytes.view());
        cache_.flags_live = cache_.flags_dirty = true;
        clobber(reg);
    });
}

void BlockCompiler::load_address(std::size_t index) {
    const auto& i = at(index);
    const auto& destination = i.operands()[0];
    const auto& memory = i.operands()[1];
    const auto reg = destination.reg.number;
    const bool in_place =
        destination.bits >= 32 && reg != rsp && !memory.memory.base.is_general(rsp);
    reserved_ = decoder::general_registers_used(i);
    const auto result = in_place ? reg : pick(reserved_);
    address(result, i, memory, false);
    if (destination.bits == 16) {
        a_.store_word(general_at(reg), result);
        clobber(reg);
    } else {
        if (destination.bits == 32) a_.move32(result, result);
        a_.store(general_at(reg), result);
        cache_.valid &= ~bit(reg);
        if (in_place) {
            clobber(reg);
            cache_.valid |= bit(reg);
        }
    }
    capture_destinations(index);
}

// mov between the accumulator and a 64-bit absolute address.
void BlockCompiler::absolute_move(std::size_t index) {
    const auto& i = at(index);
    const bool loads = i.operands()[0].kind == OperandKind::reg;
    const auto& memory = i.operands()[loads ? 1 : 0];
    const unsigned size = memory.bits / 8u;
    const auto pointer = pick(bit(rax));
    reserved_ = bit(rax) | bit(pointer);
    address(pointer, i, memory);
    capture_address(index, pointer);
    touch(index, pointer, size, loads ? Access::read : Access::write, [=, this] {
        capture_loaded(index, pointer);
        if (loads) {
            clobber(rax);
            a_.load_from(rax, pointer, 0, size);
            if (size == 1)
                a_.store_byte(general_at(rax), rax);
            else if (size == 2)
                a_.store_word(general_at(rax), rax);
            else
                a_.store(general_at(rax), rax);
            if (size >= 4) cache_.valid |= bit(rax);
        } else {
            ensure(rax);
            a_.store_to(pointer, 0, rax, size);
        }
    });
    capture_destinations(index);
}

// maskmov stores to [rdi] and has no memory operand that could be encoded, so rdi itself is
// changed.
void BlockCompiler::store_with_implicit_address(std::size_t index) {
    const auto& i = at(index);
    const auto operands = i.operands();
    const auto memory = std::find_if(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.kind == OperandKind::memory;
    });
    const auto bytes = without_address_prefixes(i);
    reserved_ = bit(rdi) | bit(rax);
    const unsigned size = memory->bits / 8u;
    capture_before_helper(index);
    address(rdi, i, *memory);
    touch(index, rdi, size, Access::modify, [=, this] { a_.bytes(bytes.view()); });
    clobber(rdi);
}

// al = [rbx + al]
void BlockCompiler::translate_table(std::size_t index) {
    const auto& i = at(index);
    const auto operands = i.operands();
    const auto memory = std::find_if(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.kind == OperandKind::memory;
    });
    const auto pointer = pick(bit(rax) | bit(rbx));
    reserved_ = bit(pointer) | bit(rax);
    a_.load_byte(pointer, general_at(rax));
    ensure(rbx);
    a_.lea(pointer, rbx, pointer, 1, 0, memory->memory.address_bits == 32);
    add_segment(pointer, memory->memory);
    capture_address(index, pointer);
    touch(index, pointer, 1, Access::read, [=, this] {
        capture_loaded(index, pointer);
        a_.load_from(pointer, pointer, 0, 1);
        a_.store_byte(general_at(rax), pointer);
        clobber(rax);
    });
    capture_destinations(index);
}

}  // namespace shadowprof::emu
