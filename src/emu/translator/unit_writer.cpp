#include "emu/translator/unit_writer.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"

namespace shadowprof::emu::translator {

using decoder::Instruction;
using decoder::Mnemonic;
using decoder::Operand;
using decoder::OperandKind;
using decoder::Segment;

namespace {

constexpr HostRegister none = Emitter::none;
// Code of a unit is never longer: 64 instructions a block, their captures, and the exits.
constexpr std::size_t most_bytes_in_block = 24u << 10;

}  // namespace

const Operand* explicit_memory(const Instruction& instruction) {
    for (const auto& operand : instruction.explicit_operands())
        if (operand.kind == OperandKind::memory) return &operand;
    return nullptr;
}

Address rip_target(const Instruction& instruction, const Operand& operand) {
    return instruction.end() + static_cast<std::uint64_t>(operand.memory.displacement);
}

bool mentions(const Operand& operand, std::uint8_t general) {
    return operand.reg.is_general(general) || operand.memory.base.is_general(general) ||
           operand.memory.index.is_general(general);
}

bool uses_stream_register(const Instruction& instruction) {
    return decoder::general_registers_used(instruction) >> stream_register & 1;
}

std::size_t slot_for(HostRegister borrowed) {
    return borrowed == decoder::rcx ? offsetof(ThreadArea, rcx) : offsetof(ThreadArea, temp);
}

// ---- The unit as a whole

bool UnitWriter::begin(CodeArena& arena, std::span<const trace::Block* const> blocks,
                       Version version, bool compares, std::uint32_t number,
                       std::uint32_t first_exit) {
    if (arena.room() < blocks.size() * most_bytes_in_block) return false;
    arena_ = &arena;
    // Entries on lines of their own would take too much room; on 16 bytes they decode well.
    auto* begin = arena.begin();
    begin += -reinterpret_cast<std::uintptr_t>(begin) & 15;
    a_ = Emitter{begin, arena.end()};
    begin_ = begin;
    number_ = number;
    unit_ = {};
    unit_.blocks.assign(blocks.begin(), blocks.end());
    unit_.version = version;
    unit_.compares = compares;
    unit_.names_itself = version == Version::timed;
    unit_.place = arena.place_of(begin);
    unit_.first_exit = first_exit;
    marks_.clear();
    relocations_.clear();
    late_.clear();
    state_ = {};
    position_ = {};
    value_offset_ = id_size;
    left_ = false;
    return true;
}

Unit UnitWriter::finish() {
    for (std::size_t i = 0; i < late_.size(); ++i) {
        const auto late = late_[i];
        state_ = late.state;
        position_ = late.position;
        value_offset_ = late.value_offset;
        mark();
        late.code();
    }
    unit_.size = static_cast<std::uint32_t>(a_.position() - begin_);
    unit_.marks = packed(marks_);
    arena_->commit(a_.position());
    return std::move(unit_);
}

void UnitWriter::move_to(std::size_t block, std::size_t instruction) {
    position_ = {static_cast<std::uint16_t>(block), static_cast<std::uint8_t>(instruction)};
    mark();
}

// ---- What r15 holds

void UnitWriter::mark(std::uint8_t borrowed) {
    const Mark mark{.offset = static_cast<std::uint32_t>(a_.position() - begin_),
                    .block = static_cast<std::uint8_t>(position_.first),
                    .instruction = position_.second,
                    .stream_register = state_.holds,
                    .borrowed = borrowed};
    if (!marks_.empty() && marks_.back().offset == mark.offset) marks_.pop_back();
    if (marks_.empty() || !mark.continues(marks_.back())) marks_.push_back(mark);
}

void UnitWriter::to_stream() {
    if (state_.holds == StreamRegister::stream) return;
    if (state_.holds == StreamRegister::changed)
        a_.store_area(offsetof(ThreadArea, r15), stream_register);
    a_.load_area(stream_register, offsetof(ThreadArea, stream));
    state_.holds = StreamRegister::stream;
}

void UnitWriter::to_guest() {
    if (state_.holds == StreamRegister::guest || state_.holds == StreamRegister::changed) return;
    free_stream_register();
    a_.load_area(stream_register, offsetof(ThreadArea, r15));
    state_.holds = StreamRegister::guest;
    mark();
}

void UnitWriter::free_stream_register() {
    if (state_.holds == StreamRegister::stream && !state_.saved) {
        a_.store_area(offsetof(ThreadArea, stream), stream_register);
        state_.saved = true;
    }
    if (state_.holds == StreamRegister::changed)
        a_.store_area(offsetof(ThreadArea, r15), stream_register);
    state_.holds = StreamRegister::other;
    mark();
}

HostRegister UnitWriter::borrow(const Instruction& instruction) {
    const auto used = decoder::general_registers_used(instruction);
    for (const HostRegister reg : {decoder::rbx, decoder::rsi, decoder::rdi, decoder::rdx,
                                   decoder::rbp, decoder::rax, decoder::rcx}) {
        if (used >> reg & 1) continue;
        a_.store_area(slot_for(reg), reg);
        mark(reg);
        return reg;
    }
    SHADOWPROF_ASSERT(false, "no instruction uses so many registers");
    return none;
}

void UnitWriter::give_back(HostRegister reg) {
    a_.load_area(reg, slot_for(reg));
    mark();
}

// ---- Memory operands

bool is_cut_behind_address(const Instruction& instruction, const Operand& operand) {
    switch (instruction.mnemonic) {
        case Mnemonic::bt:
        case Mnemonic::bts:
        case Mnemonic::btr:
        case Mnemonic::btc:
            return operand.memory.address_bits == 32 &&
                   instruction.operands()[1].kind == OperandKind::reg;
        default:
            return false;
    }
}

void UnitWriter::address(HostRegister reg, const Instruction& instruction, const Operand& operand,
                         bool with_gs) {
    const auto& memory = operand.memory;
    auto displacement = memory.displacement;
    if (operand.memory.is_rip_relative()) {
        const auto target = rip_target(instruction, operand).value;
        move_address(reg, {memory.address_bits == 32 ? target & 0xffffffffu : target});
        return;
    }
    if (instruction.mnemonic == Mnemonic::pop && memory.base.is_general(decoder::rsp))
        displacement += operand.bits / 8;
    const bool narrow = memory.address_bits == 32;
    const HostRegister base = memory.base ? memory.base.number : none;
    const HostRegister index = memory.index ? memory.index.number : none;
    if (displacement != static_cast<std::int32_t>(displacement))
        a_.move_imm(reg, static_cast<std::uint64_t>(displacement));  // an absolute address
    else
        a_.lea(reg, base, index, memory.scale, static_cast<std::int32_t>(displacement), narrow);
    if (!with_gs || memory.segment != Segment::gs) return;
    // The guest's gs base is added without touching flags and without a third register.
    free_stream_register();
    a_.load_area(stream_register, offsetof(ThreadArea, guest_gs));
    a_.lea(reg, reg, stream_register, 1, 0);
    if (uses_stream_register(instruction)) to_guest();
}

// ---- Places

void UnitWriter::refer(Refers what, std::size_t before) {
    const auto offset = static_cast<std::uint32_t>(a_.position() - begin_) - before;
    relocations_.push_back(
        {static_cast<std::uint32_t>(offset) & 0xfffffff, static_cast<std::uint32_t>(what) & 0xf});
}

void UnitWriter::move_address(HostRegister reg, Address guest) {
    move_noted(reg, guest.value, Refers::guest);
}

void UnitWriter::move_negative(HostRegister reg, Address guest) {
    move_noted(reg, -guest.value, Refers::guest_negative);
}

void UnitWriter::move_noted(HostRegister reg, std::uint64_t value, Refers what) {
    const auto* const begin = a_.position();
    a_.move_imm(reg, value);
    const bool is_whole = a_.position() - begin == Emitter::length_of_whole_move;
    refer(is_whole ? what : Refers::guest_narrow, sizeof value);
}

void UnitWriter::store_pc(Address guest) {
    a_.store_area_constant(offsetof(ThreadArea, pc), guest.value);
    refer(Refers::guest_in_halves, 2 * Emitter::store_area_half_length);
}

void UnitWriter::push_narrow(std::int32_t guest) {
    a_.push_constant(guest);
    refer(Refers::guest_narrow, sizeof guest);
}

void UnitWriter::data(Address guest) {
    a_.data(guest.value);
    refer(Refers::guest, sizeof guest.value);
}

void UnitWriter::jump_to_fixed(const std::uint8_t* code) {
    a_.jump_to(code);
    refer(Refers::fixed_code, sizeof(std::int32_t));
}

// ---- What is written down, and what is asked for

void UnitWriter::store_value(HostRegister reg) {
    a_.store_to(stream_register, value_offset_, reg);
    value_offset_ += value_size;
}

void UnitWriter::write_id(Exit& exit) {
    to_stream();
    mark();
    exit.id = a_.store_id(static_cast<std::uint32_t>(exit.segment));
    a_.advance_stream(value_offset_);
    state_ = {};
}

void UnitWriter::leave_unsupported(const Instruction& instruction) {
    ask_within(Request::unsupported, instruction.address);
    left_ = true;
}

void UnitWriter::ask_or_try_next_version() {
    auto* const jump = a_.patchable_jump();
    a_.join(jump);
    unit_.jump_if_changed = static_cast<std::uint32_t>(jump - begin_);
    ask_within(Request::changed, unit_.start());
}

void UnitWriter::ask_within(Request request, Address pc) {
    to_stream();
    mark();
    a_.store_area_constant(offsetof(ThreadArea, exit), number_);
    unit_.names_itself = true;
    ask(request, pc);
}

const std::uint8_t* code_that_asks_for_link(CodeArena& arena, std::uint32_t exit, Address target) {
    // There is one for each exit, so it is as short as can be.
    const auto& fixed = arena.fixed;
    const auto upper_half = static_cast<std::uint32_t>(target.value >> 32);
    const bool is_near = upper_half == fixed.upper_half_here;
    const std::size_t size =
        (is_near ? 2 : 3) * Emitter::store_area_half_length + Emitter::jump_length;
    auto* const begin = arena.take_aside(size);
    Emitter a{begin, begin + size};
    a.store_area_half(offsetof(ThreadArea, exit), exit);
    a.store_area_half(offsetof(ThreadArea, pc), static_cast<std::uint32_t>(target.value));
    if (!is_near) a.store_area_upper_half(offsetof(ThreadArea, pc), upper_half);
    a.jump_to(is_near ? fixed.link_near : fixed.link);
    return begin;
}

void UnitWriter::note_entry() {
    a_.store_area_constant(offsetof(ThreadArea, resume), unit_.place.value);
    refer(Refers::unit_in_halves, 2 * Emitter::store_area_half_length);
}

void UnitWriter::ask(Request request, Address pc) {
    store_pc(pc);
    a_.store_area_half(offsetof(ThreadArea, request), static_cast<std::uint32_t>(request));
    jump_to_fixed(arena_->fixed.leave);
}

}  // namespace shadowprof::emu::translator
