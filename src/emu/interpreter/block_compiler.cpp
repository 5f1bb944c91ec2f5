#include "emu/interpreter/block_compiler.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "emu/interpreter/core_helpers.h"
#include "emu/interpreter/extended_helpers.h"
#include "emu/interpreter/reencode.h"

namespace shadowprof::emu {

namespace {

using decoder::Flow;
using decoder::Mnemonic;
using decoder::OperandKind;
using decoder::rax, decoder::rcx, decoder::rdi, decoder::rdx, decoder::rsi, decoder::rsp;
using trace::Capture;

// Registers for our own purposes. The ones that programs use least come first.
constexpr HostRegister by_preference[] = {11, 10, 9, 8, 15, 14, 13, 12, 1, 6, 7, 2, 5, 3, 0};

}  // namespace

CompiledBlock BlockCompiler::compile(const trace::Block& block, std::size_t instructions,
                                     std::uint32_t number, std::vector<Link>& links) {
    SHADOWPROF_ASSERT(code_.has_room(most_bytes), "no room for a block's code");
    a_ = code_.begin();
    block_ = &block;
    count_ = instructions;
    number_ = number;
    links_ = &links;
    marks_.clear();
    late_.clear();
    cache_ = {};
    left_ = false;

    const auto* begin = a_.position();
    write_entry();
    for (std::size_t i = 0; i < count_ && !left_; ++i) compile_instruction(i);
    if (!left_) {
        save_flags();
        advance_values();
        go_to(at(count_ - 1).end());
    }
    for (std::size_t i = 0; i < late_.size(); ++i) {
        const auto write = late_[i];  // which may add to late_
        write();
    }

    CompiledBlock compiled;
    compiled.block = &block;
    compiled.instructions = static_cast<std::uint8_t>(count_);
    compiled.entry = begin;
    compiled.begin = code_.offset_of(begin);
    compiled.end = code_.offset_of(a_.position());
    compiled.marks = std::move(marks_);
    SHADOWPROF_ASSERT(compiled.end - compiled.begin <= most_bytes, "block's code is too long");
    code_.commit(a_);
    return compiled;
}

void BlockCompiler::write_entry() {
    const auto n = static_cast<std::int8_t>(count_);
    a_.subtract_from_core(offsetof(Core, budget), n);
    const auto give_back_and_exit = [this, n](std::uint8_t* from, ExitKind kind) {
        late_.push_back([this, n, from, kind] {
            a_.join(from);
            a_.add_to_core(offsetof(Core, budget), n);
            exit(kind, number_);
        });
    };
    give_back_and_exit(a_.jump_if(Condition::s), ExitKind::budget);
    if (!recorded_) return;
    if (!block_->slots.empty()) {
        load_values_pointer(0);
        a_.compare_with_core(cache_.values, offsetof(Core, values_limit));
        give_back_and_exit(a_.jump_if(Condition::a), ExitKind::values_full);
    }
    const auto blocks = pick(0);
    a_.load(blocks, offsetof(Core, blocks));
    a_.raw(0x40 | blocks >> 3, 0xc7, 0x40 | (blocks & 7), 0);  // mov dword [blocks + 0], id
    const auto id = static_cast<std::uint32_t>(block_->id);
    a_.bytes(std::as_bytes(std::span{&id, 1}));
    a_.lea(blocks, blocks, HostAssembler::none, 1, 4);
    a_.store(offsetof(Core, blocks), blocks);
}

void BlockCompiler::compile_instruction(std::size_t index) {
    using enum Mnemonic;
    reserved_ = 0;
    const auto& i = at(index);
    capture_registers(index);
    capture_error(index);
    if (i.flow == Flow::system_call) {
        save_flags();
        advance_values();
        a_.move_imm(rax, i.end().value);
        a_.store(offsetof(Core, rip), rax);
        exit(ExitKind::system_call, static_cast<std::uint32_t>(index));
        left_ = true;
        return;
    }
    if (i.flow == Flow::trap || i.privileged) {
        save_flags();
        exit(ExitKind::trap, static_cast<std::uint32_t>(index));
        left_ = true;
        return;
    }
    if (i.flow != Flow::next) return branch(index);
    if (decoder::is_string(i.mnemonic)) return string(index);

    switch (i.mnemonic) {
        case nop:
        case pause:
        case endbr32:
        case endbr64:
        case prefetch:
        case prefetchnta:
        case prefetcht0:
        case prefetcht1:
        case prefetcht2:
        case prefetchw:
        case prefetchwt1:
        case cldemote:
        case lfence:
        case mfence:
        case sfence:
            capture_before_helper(index);
            return;
        case lea:
            return load_address(index);
        case push:
            return this->push(index);
        case pop:
            return this->pop(index);
        case pushf:
        case pushfq:
            return push_flags(index);
        case popf:
        case popfq:
            return pop_flags(index);
        case leave:
            return this->leave(index);
        case enter:
            return this->enter(index);
        case cld:
            return set_direction(false);
        case std:
            return set_direction(true);
        case xlat:
            return translate_table(index);
        case maskmovq:
        case maskmovdqu:
        case vmaskmovdqu:
            return store_with_implicit_address(index);
        case movdir64b:
            return move_64_bytes(index);
        case clzero:
            return clear_cache_line(index);
        case rdfsbase:
        case rdgsbase:
        case wrfsbase:
        case wrgsbase:
            return segment_base(index);
        case fxsave:
        case fxsave64:
        case fxrstor:
        case fxrstor64:
        case xsave:
        case xsave64:
        case xsavec:
        case xsavec64:
        case xsaveopt:
        case xsaveopt64:
        case xrstor:
        case xrstor64:
            return save_or_restore_state(index);
        case bt:
        case bts:
        case btr:
        case btc:
            return bit_string(index);
        case enqcmd:
        case enqcmds:
        case rdpkru:
        case wrpkru:
        case incsspd:
        case incsspq:
        case saveprevssp:
        case rstorssp:
        case wrssd:
        case wrssq:
        case clui:
        case stui:
        case testui:
        case senduipi:
        case umonitor:
        case umwait:
        case monitor:
        case mwait:
        case monitorx:
        case mwaitx:
            return unsupported(index);
        default:
            return computing(index);
    }
}

void BlockCompiler::advance_values() {
    if (!recorded_) return;
    const auto slots = static_cast<std::size_t>(
        std::count_if(block_->slots.begin(), block_->slots.end(),
                      [&](const trace::Slot& slot) { return slot.instruction < count_; }));
    if (slots == 0) return;
    load_values_pointer(reserved_);
    a_.lea(cache_.values, cache_.values, HostAssembler::none, 1,
           static_cast<std::int32_t>(8 * slots));
    a_.store(offsetof(Core, values), cache_.values);
    cache_.values = HostAssembler::none;
}

void BlockCompiler::mark(std::size_t index) {
    marks_.push_back(
        {code_.offset_of(a_.position()), static_cast<std::uint8_t>(index), cache_.flags_dirty});
}

void BlockCompiler::exit(ExitKind kind, std::uint32_t detail) {
    a_.store_imm32(offsetof(Core, exit_kind), static_cast<std::uint32_t>(kind));
    a_.store_imm32(offsetof(Core, exit_detail), detail);
    a_.store_imm32(offsetof(Core, exit_block), number_);
    a_.jump_to(code_.leave);
}

void BlockCompiler::exit_later_if(Condition c, ExitKind kind, std::uint32_t detail) {
    auto* from = a_.jump_if(c);
    late_.push_back([this, from, kind, detail] {
        a_.join(from);
        exit(kind, detail);
    });
}

// After a helper that wrote to memory; clobbers the host's flags.
void BlockCompiler::exit_if_code_changed(std::size_t index) {
    a_.compare_core32(offsetof(Core, code_changed), 0);
    auto* from = a_.jump_if(Condition::ne);
    late_.push_back([this, from, index] {
        a_.join(from);
        const auto& i = at(index);
        if (i.flow == Flow::indirect_call)
            a_.load(rax, offsetof(Core, scratch));
        else
            a_.move_imm(rax, (i.flow == Flow::call ? i.target : i.end()).value);
        a_.store(offsetof(Core, rip), rax);
        exit(ExitKind::code_changed, static_cast<std::uint32_t>(index + 1));
    });
}

void BlockCompiler::unsupported(std::size_t index) {
    save_flags();
    exit(ExitKind::unsupported, static_cast<std::uint32_t>(index));
    left_ = true;
}

// ---- What is in the host's registers ----------------------------------------------------------

HostRegister BlockCompiler::pick(Registers avoid) {
    avoid |= bit(rsp);
    const auto free = [&](HostRegister reg) { return !(avoid & bit(reg)); };
    HostRegister chosen = HostAssembler::none;
    for (const auto reg : by_preference) {
        if (!free(reg)) continue;
        if (chosen == HostAssembler::none) chosen = reg;
        if (!(cache_.valid & bit(reg)) && reg != cache_.values) {
            chosen = reg;
            break;
        }
    }
    SHADOWPROF_ASSERT(chosen != HostAssembler::none, "an instruction uses every register");
    clobber(chosen);
    return chosen;
}

void BlockCompiler::clobber(HostRegister reg) {
    cache_.valid &= ~bit(reg);
    if (cache_.values == reg) cache_.values = HostAssembler::none;
}

void BlockCompiler::clobber_all() {
    SHADOWPROF_ASSERT(!cache_.flags_dirty, "flags were not saved");
    cache_ = {};
}

void BlockCompiler::ensure(HostRegister guest) {
    if (cache_.valid & bit(guest)) return;
    clobber(guest);
    a_.load(guest, general_at(guest));
    cache_.valid |= bit(guest);
}

void BlockCompiler::load_values_pointer(Registers avoid) {
    if (cache_.values != HostAssembler::none && !(avoid & bit(cache_.values))) return;
    const auto reg = pick(avoid);
    a_.load(reg, offsetof(Core, values));
    cache_.values = reg;
}

void BlockCompiler::save_flags() {
    if (!cache_.flags_dirty) return;
    clobber(rax);
    a_.flags_to_rax();
    a_.store32(offsetof(Core, flags), rax);
    cache_.flags_dirty = false;
}

void BlockCompiler::load_flags() {
    if (cache_.flags_live) return;
    clobber(rax);
    a_.load32(rax, offsetof(Core, flags));
    a_.flags_from_rax();
    cache_.flags_live = true;
    cache_.flags_dirty = false;
}

// Loads from the Core what the registers hold according to `cache`.
void BlockCompiler::restore(const Cache& cache) {
    cache_ = {};
    if (cache.flags_live) load_flags();
    for (HostRegister reg = 0; reg < 16; ++reg)
        if (cache.valid & bit(reg)) a_.load(reg, general_at(reg));
    if (cache.values != HostAssembler::none) a_.load(cache.values, offsetof(Core, values));
    cache_ = cache;
}

// ---- Memory -----------------------------------------------------------------------------------

void BlockCompiler::address(HostRegister reg, const Instruction& instruction,
                            const Operand& operand, bool with_segment,
                            std::int32_t stack_adjustment) {
    const auto& m = operand.memory;
    const bool narrow = m.address_bits == 32;
    const auto displacement = static_cast<std::uint64_t>(m.displacement);
    if (m.is_rip_relative()) {
        const auto sum = instruction.end().value + displacement;
        a_.move_imm(reg, narrow ? sum & 0xffffffffu : sum);
    } else if (!m.base && !m.index) {
        a_.move_imm(reg, narrow ? displacement & 0xffffffffu : displacement);
    } else {
        HostRegister base = HostAssembler::none, index = HostAssembler::none;
        auto offset = static_cast<std::int32_t>(m.displacement);
        if (m.index) {
            index = m.index.number;
            ensure(index);
        }
        if (m.base.is_general(rsp)) {
            a_.load(reg, general_at(rsp));
            base = reg;
            if (stack_adjustment != 0) {
                a_.lea(reg, reg, HostAssembler::none, 1, stack_adjustment);
            }
        } else if (m.base) {
            base = m.base.number;
            ensure(base);
        }
        if (index == HostAssembler::none && offset == 0 && !narrow) {
            if (base != reg) a_.move(reg, base);
        } else {
            a_.lea(reg, base, index, m.scale, offset, narrow);
        }
    }
    if (with_segment) add_segment(reg, m);
}

void BlockCompiler::add_segment(HostRegister reg, const decoder::MemoryOperand& memory) {
    using decoder::Segment;
    if (memory.segment != Segment::fs && memory.segment != Segment::gs) return;
    save_flags();
    cache_.flags_live = false;
    a_.add_from_core(
        reg, memory.segment == Segment::fs ? offsetof(Core, fs_base) : offsetof(Core, gs_base));
}

BlockCompiler::Access BlockCompiler::access_of(const Operand& operand) {
    return !operand.writes ? Access::read : operand.reads ? Access::modify : Access::write;
}

void BlockCompiler::touch(std::size_t index, HostRegister reg, unsigned size, Access access,
                          const Body& body) {
    const bool writes = access != Access::read;
    const auto tlb = writes ? offsetof(Core, write_tlb) : offsetof(Core, read_tlb);
    constexpr auto piece = offsetof(TlbEntry, piece), host = offsetof(TlbEntry, host);
    const auto entry = pick(bit(reg) | bit(rax) | reserved_);
    save_flags();
    cache_.flags_live = false;
    a_.move(entry, reg);
    a_.shift_right(entry, std::countr_zero(piece_size / sizeof(TlbEntry)));
    a_.and_imm(entry, (tlb_size - 1) * sizeof(TlbEntry), false);
    a_.subtract_core(reg, tlb + piece, entry);
    // An access that is larger than a piece always takes the slow way.
    const bool fits = size <= piece_size;
    a_.compare_imm(reg, fits ? static_cast<std::int32_t>(piece_size - size) : 0, true);
    auto* slow = a_.jump_if(fits ? Condition::a : Condition::ae);
    a_.add_from_core(reg, tlb + host, entry);
    clobber(reg);
    const auto* inline_again = a_.position();
    const auto before = cache_;
    const auto reserved_before = reserved_;
    mark(index);
    body();
    const auto* after = a_.position();
    const auto afterwards = cache_;

    const auto bits =
        size | (access != Access::write ? access_reads : 0u) | (writes ? access_writes : 0u);
    const bool is_remembered = x87_remembers_operand(at(index));
    late_.push_back([=, this, reserved = reserved_before] {
        a_.join(slow);
        a_.add_from_core(reg, tlb + piece, entry);
        a_.store(offsetof(Core, slow_address), reg);
        a_.store_imm32(offsetof(Core, slow_access), bits);
        a_.call(code_.resolve);
        if (reg != rax) a_.move(reg, rax);
        restore(before);
        if (!writes && !is_remembered) {
            a_.jump_to(inline_again);
            return;
        }
        a_.compare_core32(offsetof(Core, unfinished), 0);
        a_.jump_to_if(Condition::e, inline_again);
        reserved_ = reserved;
        mark(index);
        body();
        save_flags();
        // This must be done while it is known for which address the substitute stands.
        if (is_remembered) call_ordinary(restore_x87_pointers, 0);
        if (writes) {
            a_.call(code_.finish_write);
            exit_if_code_changed(index);
        }
        restore(afterwards);
        a_.jump_to(after);
    });
}

// ---- Captures ---------------------------------------------------------------------------------

BlockCompiler::SlotRange BlockCompiler::slots_of(std::size_t index, Capture kind) const {
    if (!recorded_) return {0, 0};
    const auto& slots = block_->slots;
    const auto belongs = [&](const trace::Slot& slot) {
        return slot.instruction == index && slot.kind == kind;
    };
    const auto first = std::find_if(slots.begin(), slots.end(), belongs);
    const auto last = std::find_if_not(first, slots.end(), belongs);
    return {static_cast<std::size_t>(first - slots.begin()),
            static_cast<std::size_t>(last - slots.begin())};
}

void BlockCompiler::capture_registers(std::size_t index) {
    for (const auto kind : {Capture::arguments, Capture::register_before}) {
        const auto range = slots_of(index, kind);
        for (auto slot = range.first; slot < range.last; ++slot) {
            load_values_pointer(0);
            auto value = HostRegister{block_->slots[slot].operand};
            if (!(cache_.valid & bit(value))) {
                const auto from = general_at(value);
                a_.load(value = pick(bit(cache_.values)), from);
            }
            a_.store_to(cache_.values, static_cast<std::int32_t>(8 * slot), value);
        }
    }
}

void BlockCompiler::capture_error(std::size_t index) {
    const auto range = slots_of(index, Capture::error_before);
    for (auto slot = range.first; slot < range.last; ++slot) {
        save_flags();
        const auto place = static_cast<std::int64_t>(block_->slots[slot].displacement);
        a_.move_imm(rax, static_cast<std::uint64_t>(place));
        clobber(rax);
        if (place != 0) {
            a_.store(offsetof(Core, slow_address), rax);
            a_.call(code_.error);
            clobber_all();
        }
        load_values_pointer(bit(rax));
        a_.store_to(cache_.values, static_cast<std::int32_t>(8 * slot), rax);
    }
}

void BlockCompiler::capture_address(std::size_t index, HostRegister address) {
    const auto range = slots_of(index, Capture::memory_addresses);
    for (auto slot = range.first; slot < range.last; ++slot) {
        load_values_pointer(bit(address) | reserved_);
        a_.store_to(cache_.values, static_cast<std::int32_t>(8 * slot), address);
    }
}

void BlockCompiler::capture_loaded(std::size_t index, HostRegister host) {
    const auto range = slots_of(index, Capture::loaded_values);
    for (auto slot = range.first; slot < range.last; ++slot) {
        load_values_pointer(bit(host) | reserved_);
        const auto value = pick(bit(host) | bit(cache_.values) | reserved_);
        a_.load_from(value, host, 0, block_->slots[slot].bits / 8u);
        a_.store_to(cache_.values, static_cast<std::int32_t>(8 * slot), value);
    }
}

// For instructions that do not go through touch(): captures addresses and loaded values of their
// explicit memory operands, whatever else they do.
void BlockCompiler::capture_before_helper(std::size_t index) {
    for (const auto kind : {Capture::memory_addresses, Capture::loaded_values}) {
        const auto range = slots_of(index, kind);
        for (auto slot = range.first; slot < range.last; ++slot) {
            save_flags();
            const auto& i = at(index);
            const auto& operand = i.operands()[block_->slots[slot].operand];
            auto value = pick(bit(rax) | decoder::general_registers_used(i));
            address(value, i, operand);
            if (kind == Capture::loaded_values) {
                a_.store(offsetof(Core, slow_address), value);
                a_.store_imm32(offsetof(Core, slow_access), block_->slots[slot].bits / 8u);
                a_.call(code_.peek);
                clobber_all();
                value = rax;
            }
            load_values_pointer(bit(value));
            a_.store_to(cache_.values, static_cast<std::int32_t>(8 * slot), value);
        }
    }
}

void BlockCompiler::capture_destinations(std::size_t index) {
    const auto range = slots_of(index, Capture::destination_values);
    for (auto slot = range.first; slot < range.last; ++slot) {
        const auto& description = block_->slots[slot];
        const auto& operand = at(index).operands()[description.operand];
        const auto reg = operand.reg;
        load_values_pointer(reserved_);
        auto value = HostAssembler::none;
        const auto bits = description.bits;
        if (reg.kind == decoder::RegisterKind::general) {
            const bool is_zero_extended = bits == 64 || (bits == 32 && !operand.conditional);
            if (is_zero_extended && (cache_.valid & bit(reg.number))) {
                value = reg.number;
            } else {
                value = pick(bit(cache_.values) | reserved_);
                const auto from = general_at(reg.number) + (reg.high_byte ? 1 : 0);
                if (bits == 8)
                    a_.load_byte(value, from);
                else if (bits == 16)
                    a_.load_word(value, from);
                else if (bits == 32)
                    a_.load32(value, from);
                else
                    a_.load(value, from);
            }
        } else {
            value = pick(bit(cache_.values) | reserved_);
            read_vector_or_mask(value, reg);
            if (bits == 8) a_.zero_extend_byte(value, value);
            if (bits == 16) a_.zero_extend_word(value, value);
            if (bits == 32) a_.move32(value, value);
        }
        a_.store_to(cache_.values, static_cast<std::int32_t>(8 * slot), value);
    }
}

// value = the low 64 bits of a vector register, or a mask register
void BlockCompiler::read_vector_or_mask(HostRegister value, decoder::Register reg) {
    const auto high_value = value >> 3, n = static_cast<int>(reg.number);
    if (reg.kind == decoder::RegisterKind::mask) {
        static const bool has_wide_masks = __builtin_cpu_supports("avx512bw");
        // kmovq r64, k (or kmovw r32, k)
        if (has_wide_masks)
            a_.raw(0xc4, 0x61 | (high_value ? 0 : 0x80), 0xfb, 0x93);
        else
            a_.raw(0xc4, 0x61 | (high_value ? 0 : 0x80), 0x78, 0x93);
        a_.raw(0xc0 | (value & 7) << 3 | n);
    } else if (n < 16) {
        // movq r64, xmm
        a_.raw(0x66, 0x48 | (n >> 3) << 2 | high_value, 0x0f, 0x7e,
               0xc0 | (n & 7) << 3 | (value & 7));
    } else {
        // vmovq r64, xmm by EVEX: R and R' (inverted) extend n, B (inverted) the general register.
        const auto r = n & 8 ? 0 : 0x80, r_high = n & 16 ? 0 : 0x10, b = high_value ? 0 : 0x20;
        a_.raw(0x62, r | 0x40 | b | r_high | 1, 0xfd, 0x08, 0x7e,
               0xc0 | (n & 7) << 3 | (value & 7));
    }
}

}  // namespace shadowprof::emu
