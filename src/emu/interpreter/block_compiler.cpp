#include "emu/interpreter/block_compiler.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "decoder/by_mnemonic.h"
#include "emu/interpreter/core_helpers.h"
#include "emu/interpreter/extended_helpers.h"
#include "emu/interpreter/reencode.h"

namespace shadowprof::emu {

namespace {

using decoder::Flow;
using decoder::rax, decoder::rcx, decoder::rdi, decoder::rdx, decoder::rsi, decoder::rsp;

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
    } else if (i.flow == Flow::trap || i.privileged) {
        save_flags();
        exit(ExitKind::trap, static_cast<std::uint32_t>(index));
        left_ = true;
    } else if (i.flow != Flow::next) {
        branch(index);
    } else if (decoder::is_string(i.mnemonic)) {
        string(index);
    } else {
        (this->*way_of(i.mnemonic))(index);
    }
}

BlockCompiler::Way BlockCompiler::way_of(decoder::Mnemonic mnemonic) {
    using Self = BlockCompiler;
    using enum decoder::Mnemonic;
    static constexpr decoder::ByMnemonic<Way> ways{
        &Self::computing,
        {{&Self::capture_before_helper,
          {nop, pause, endbr32, endbr64, prefetch, prefetchnta, prefetcht0, prefetcht1, prefetcht2,
           prefetchw, prefetchwt1, cldemote, lfence, mfence, sfence}},
         {&Self::load_address, {lea}},
         {&Self::push, {decoder::Mnemonic::push}},
         {&Self::pop, {decoder::Mnemonic::pop}},
         {&Self::push_flags, {pushf, pushfq}},
         {&Self::pop_flags, {popf, popfq}},
         {&Self::leave, {decoder::Mnemonic::leave}},
         {&Self::enter, {decoder::Mnemonic::enter}},
         {&Self::set_direction, {cld, std}},
         {&Self::translate_table, {xlat}},
         {&Self::store_with_implicit_address, {maskmovq, maskmovdqu, vmaskmovdqu}},
         {&Self::move_64_bytes, {movdir64b}},
         {&Self::clear_cache_line, {clzero}},
         {&Self::segment_base, {rdfsbase, rdgsbase, wrfsbase, wrgsbase}},
         {&Self::save_or_restore_state,
          {fxsave, fxsave64, fxrstor, fxrstor64, xsave, xsave64, xsavec, xsavec64, xsaveopt,
           xsaveopt64, xrstor, xrstor64}},
         {&Self::bit_string, {bt, bts, btr, btc}},
         {&Self::unsupported, {enqcmd,   enqcmds, rdpkru,  wrpkru, incsspd,  incsspq, saveprevssp,
                               rstorssp, wrssd,   wrssq,   clui,   stui,     testui,  senduipi,
                               umonitor, umwait,  monitor, mwait,  monitorx, mwaitx}}}};
    return ways[mnemonic];
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

}  // namespace shadowprof::emu
