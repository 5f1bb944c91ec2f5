#include "emu/translator/unit_compiler.h"

#include <immintrin.h>

#include <algorithm>
#include <cstddef>

#include "base/error.h"

namespace shadowprof::emu::translator {

namespace {

using decoder::Flow;
using decoder::Instruction;
using decoder::MemoryUse;
using decoder::Mnemonic;
using decoder::Operand;
using decoder::OperandKind;
using decoder::RegisterKind;
using decoder::Segment;
using trace::BlockExit;
using trace::Capture;

constexpr HostRegister none = Assembler::none;
constexpr std::uint8_t fs_prefix = 0x64;
// Code of a unit is never longer: 64 instructions a block, their captures, and the exits.
constexpr std::size_t most_bytes_in_block = 24u << 10;

// Conditions are numbered as the hardware numbers them: the low bits of the opcode.
std::optional<Condition> condition_of(const Instruction& branch) {
    if (branch.mnemonic < Mnemonic::jo || branch.mnemonic > Mnemonic::jg) return {};
    return static_cast<Condition>(static_cast<unsigned>(branch.mnemonic) -
                                  static_cast<unsigned>(Mnemonic::jo));
}

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

bool writes_stream_register(const Instruction& instruction) {
    const auto operands = instruction.operands();
    return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.writes && operand.reg.is_general(stream_register);
    });
}

// The address of a bit string's bit is cut to 32 bits after the bit's distance was added: no
// register can hold it in front of that.
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

// What would disturb or show gs, which is ours.
bool touches_gs(const Instruction& instruction) {
    if (instruction.mnemonic == Mnemonic::rdgsbase || instruction.mnemonic == Mnemonic::wrgsbase ||
        instruction.mnemonic == Mnemonic::lgs)
        return true;
    const auto* explicit_operand = explicit_memory(instruction);
    for (const auto& operand : instruction.operands()) {
        if (operand.reg.kind == RegisterKind::segment && operand.writes &&
            operand.reg.number == static_cast<std::uint8_t>(Segment::gs))
            return true;
        const bool in_gs = operand.kind == OperandKind::memory &&
                           operand.memory.segment == Segment::gs &&
                           operand.memory.use != MemoryUse::address_only;
        if (!in_gs) continue;
        const bool can_be_rewritten =
            &operand == explicit_operand && operand.memory.use == MemoryUse::access &&
            !operand.memory.is_rip_relative() && !is_cut_behind_address(instruction, operand);
        if (!can_be_rewritten) return true;
    }
    return false;
}

// Traps that carry out no transfer of control by themselves: they fault, in the cache as anywhere.
bool may_be_copied(const Instruction& trap) {
    switch (trap.mnemonic) {
        case Mnemonic::int_:
        case Mnemonic::int1:
        case Mnemonic::int3:
        case Mnemonic::ud0:
        case Mnemonic::ud1:
        case Mnemonic::ud2:
        case Mnemonic::hlt:
            return true;
        default:
            return trap.privileged && trap.mnemonic != Mnemonic::sysret &&
                   trap.mnemonic != Mnemonic::sysexit;
    }
}

std::size_t slot_for(HostRegister borrowed) {
    return borrowed == decoder::rcx ? offsetof(ThreadArea, rcx) : offsetof(ThreadArea, temp);
}

constexpr std::size_t second_temp = offsetof(ThreadArea, temp) + 8;
constexpr std::size_t third_temp = offsetof(ThreadArea, temp) + 16;

}  // namespace

UnitCompiler::UnitCompiler(UnitDirectory& directory, std::uint32_t tables)
    : directory_(directory),
      tables_(tables),
      has_avx_(__builtin_cpu_supports("avx")),
      has_wide_masks_(__builtin_cpu_supports("avx512bw")) {}

std::optional<UnitCompiler::Result> UnitCompiler::compile(CodeArena& arena,
                                                          std::vector<const trace::Block*> blocks,
                                                          Version version, bool compares,
                                                          std::uint32_t number,
                                                          std::uint32_t first_exit) {
    if (arena.room() < blocks.size() * most_bytes_in_block) return {};
    arena_ = &arena;
    // Entries on lines of their own cost too much room; on 16 bytes they decode well.
    auto* begin = arena.begin();
    begin += -reinterpret_cast<std::uintptr_t>(begin) & 15;
    a_ = Emitter{begin, arena.end()};
    begin_ = begin;
    number_ = number;
    unit_ = {};
    unit_.blocks = std::move(blocks);
    unit_.version = version;
    unit_.compares = compares;
    unit_.place = arena.place_of(begin);
    unit_.first_exit = first_exit;
    exits_.clear();
    marks_.clear();
    late_.clear();
    executed_.clear();
    state_ = {};
    position_ = {};
    value_offset_ = 4;
    left_ = false;

    write_entry();
    for (std::size_t block = 0; block < unit_.blocks.size() && !left_; ++block) write_block(block);
    for (std::size_t i = 0; i < late_.size(); ++i) {
        const auto late = late_[i];
        state_ = late.state;
        position_ = late.position;
        value_offset_ = late.value_offset;
        mark();
        late.code();
    }
    unit_.size = static_cast<std::uint32_t>(a_.position() - begin);
    unit_.exit_count = static_cast<std::uint32_t>(exits_.size());
    for (auto& exit : exits_) exit.unit = number;
    unit_.marks.assign(marks_.begin(), marks_.end());
    arena.commit(a_.position());
    return Result{std::move(unit_), std::move(exits_)};
}

// ---- What r15 holds

void UnitCompiler::mark(std::uint8_t borrowed) {
    const Mark mark{.offset = static_cast<std::uint32_t>(a_.position() - begin_),
                    .block = position_.first,
                    .instruction = position_.second,
                    .stream_register = state_.holds,
                    .borrowed = borrowed};
    if (!marks_.empty() && marks_.back().offset == mark.offset) marks_.pop_back();
    if (marks_.empty() || !mark.continues(marks_.back())) marks_.push_back(mark);
}

void UnitCompiler::to_stream() {
    if (state_.holds == StreamRegister::stream) return;
    if (state_.holds == StreamRegister::changed)
        a_.store_area(offsetof(ThreadArea, r15), stream_register);
    a_.load_area(stream_register, offsetof(ThreadArea, stream));
    state_.holds = StreamRegister::stream;
}

void UnitCompiler::to_guest() {
    if (state_.holds == StreamRegister::guest || state_.holds == StreamRegister::changed) return;
    free_stream_register();
    a_.load_area(stream_register, offsetof(ThreadArea, r15));
    state_.holds = StreamRegister::guest;
    mark();
}

void UnitCompiler::free_stream_register() {
    if (state_.holds == StreamRegister::stream && !state_.saved) {
        a_.store_area(offsetof(ThreadArea, stream), stream_register);
        state_.saved = true;
    }
    if (state_.holds == StreamRegister::changed)
        a_.store_area(offsetof(ThreadArea, r15), stream_register);
    state_.holds = StreamRegister::other;
    mark();
}

// A register that the instruction has nothing to do with, and that goes with every encoding.
HostRegister UnitCompiler::borrow(const Instruction& instruction) {
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

void UnitCompiler::give_back(HostRegister reg) {
    a_.load_area(reg, slot_for(reg));
    mark();
}

// ---- Entry

// Whether the status flags as they are at `at` may be read by anybody.
bool UnitCompiler::flags_matter(Address at, unsigned depth) const {
    const auto* block = directory_.block_at(at);
    if (!block) return true;
    auto left = decoder::status_flags;
    for (const auto& instruction : block->instructions) {
        // The kernel gives back those it found.
        if (instruction.flow == Flow::system_call) return true;
        if (instruction.flags_read & left) return true;
        if (!instruction.flags_conditional)
            left &= ~(instruction.flags_written & ~instruction.flags_undefined);
        if (!left) return false;
    }
    if (depth == 0) return true;
    const auto& last = block->last();
    switch (block->exit) {
        case BlockExit::jump:
        case BlockExit::call:
            return flags_matter(last.target, depth - 1);
        case BlockExit::length:
            return flags_matter(last.end(), depth - 1);
        case BlockExit::conditional:
            return flags_matter(last.target, depth - 1) || flags_matter(last.end(), depth - 1);
        default:
            return true;
    }
}

bool UnitCompiler::flags_matter_at_entry() const {
    return flags_matter(unit_.start(), 2);
}

void UnitCompiler::write_entry() {
    mark();
    // Who finds that the code changed does not know what the new code reads.
    const bool keep_flags = unit_.compares || flags_matter_at_entry();
    if (keep_flags) {
        a_.store_area(second_temp, decoder::rax);
        a_.flags_to_rax();
    }
    const LateCode restore_flags{[this, keep_flags] {
        if (!keep_flags) return;
        a_.flags_from_rax();
        a_.load_area(decoder::rax, second_temp);
    }};
    const auto look_later_if = [&](Condition condition) {
        late([this, keep_flags, jump = a_.jump_if(condition)] {
            a_.join(jump);
            if (keep_flags) {
                a_.flags_from_rax();
                a_.load_area(decoder::rax, second_temp);
            }
            ask(Request::look, unit_.start());
        });
    };
    if (unit_.version == Version::values || unit_.version == Version::accesses) {
        a_.count_down_area(offsetof(ThreadArea, left));
        look_later_if(Condition::s);
    }
    a_.test_stream_bits(look_bits);
    look_later_if(Condition::ne);
    if (unit_.compares) compare_code(restore_flags);
    restore_flags();
}

void UnitCompiler::compare_code(const LateCode& restore_flags) {
    a_.store_area(third_temp, decoder::rcx);
    std::vector<std::uint8_t*> jumps;
    for (const auto* block : unit_.blocks) {
        std::vector<std::byte> bytes;
        for (const auto& instruction : block->instructions) {
            const auto encoding = instruction.encoding();
            bytes.insert(bytes.end(), encoding.begin(), encoding.end());
        }
        a_.move_imm(decoder::rcx, block->start.value);
        for (std::size_t at = 0; at < bytes.size();) {
            const auto left = bytes.size() - at;
            const unsigned size = left >= 4 ? 4 : left >= 2 ? 2 : 1;
            std::uint32_t value = 0;
            std::memcpy(&value, bytes.data() + at, size);
            a_.compare_memory(decoder::rcx, static_cast<std::int32_t>(at), value, size);
            jumps.push_back(a_.jump_if(Condition::ne));
            at += size;
        }
    }
    a_.load_area(decoder::rcx, third_temp);
    auto* over = a_.jump();
    for (auto* jump : jumps) a_.join(jump);
    a_.load_area(decoder::rcx, third_temp);
    restore_flags();
    ask(Request::changed, unit_.start());
    a_.join(over);
}

// ---- Instructions

void UnitCompiler::write_block(std::size_t index) {
    const auto& block = *unit_.blocks[index];
    executed_.push_back(block.id);
    next_slot_ = 0;
    for (std::size_t i = 0; i < block.instructions.size() && !left_; ++i) {
        position_ = {static_cast<std::uint16_t>(index), static_cast<std::uint8_t>(i)};
        mark();
        write_instruction(index, i);
    }
}

void UnitCompiler::write_instruction(std::size_t block, std::size_t index) {
    const auto& instruction = at(block, index);
    if (touches_gs(instruction)) return leave_unsupported(instruction);
    capture_before(block, index);
    if (instruction.flow != Flow::next) return write_branch(block);
    write_plain(instruction);
    if (left_) return;
    capture_after(block, index);
    if (index + 1 == unit_.blocks[block]->instructions.size() && !next_of(block))
        leave_directly(instruction.end());
}

void UnitCompiler::write_plain(const Instruction& instruction) {
    if (instruction.mnemonic == Mnemonic::popfq) return write_popfq(instruction);
    if (instruction.mnemonic == Mnemonic::pushfq) return write_pushfq(instruction);
    const auto* memory = explicit_memory(instruction);
    const bool uses_r15 = uses_stream_register(instruction);
    const bool in_gs =
        memory && memory->memory.segment == Segment::gs && memory->memory.use == MemoryUse::access;
    if (uses_r15) to_guest();
    if (memory && memory->memory.is_rip_relative()) {
        if (const auto moved = decoder::moved_to(instruction, here())) {
            a_.bytes(moved->view());
        } else if (memory->memory.use == MemoryUse::address_only) {
            // Hints may be left out.
            if (instruction.mnemonic == Mnemonic::lea) {
                const auto& destination = instruction.operands()[0].reg;
                const auto target = rip_target(instruction, *memory).value;
                if (destination.bits < 32) return leave_unsupported(instruction);
                const auto narrow = destination.bits == 32 || memory->memory.address_bits == 32;
                a_.move_imm(destination.number, narrow ? target & 0xffffffffu : target);
            }
        } else if (is_cut_behind_address(instruction, *memory)) {
            return leave_unsupported(instruction);
        } else {
            const auto borrowed = borrow(instruction);
            address(borrowed, instruction, *memory, false);
            write_with_memory_at(instruction, borrowed);
        }
    } else if (in_gs) {
        const auto borrowed = borrow(instruction);
        address(borrowed, instruction, *memory, true);
        mark(borrowed);
        write_with_memory_at(instruction, borrowed);
    } else {
        a_.bytes(instruction.encoding());
    }
    if (uses_r15 && writes_stream_register(instruction)) {
        state_.holds = StreamRegister::changed;
        mark();
    }
}

// Java looks whether a processor has the flag by setting it.
void UnitCompiler::write_popfq(const Instruction& instruction) {
    constexpr auto rax = decoder::rax, rsp = decoder::rsp;
    constexpr int size = 8;
    a_.test_memory(rsp, 0, alignment_check_flag);
    auto* const sets_it = a_.jump_if(Condition::ne);
    a_.store_area_constant(offsetof(ThreadArea, alignment_check), 0);
    a_.bytes(instruction.encoding());
    late([this, &instruction, sets_it, back = a_.position()] {
        a_.join(sets_it);
        a_.store_area(slot_for(rax), rax);
        mark(rax);
        a_.load_from(rax, rsp, 0, size);
        a_.store_area(third_temp, rax);
        a_.and_imm(rax, ~static_cast<std::int32_t>(alignment_check_flag), true);
        a_.store_to(rsp, 0, rax);
        a_.bytes(instruction.encoding());
        a_.load_area(rax, third_temp);
        a_.store_to(rsp, -size, rax);
        a_.store_area_constant(offsetof(ThreadArea, alignment_check), alignment_check_flag);
        give_back(rax);
        a_.jump_to(back);
    });
}

void UnitCompiler::write_pushfq(const Instruction& instruction) {
    constexpr auto rax = decoder::rax, rcx = decoder::rcx, rsp = decoder::rsp;
    a_.bytes(instruction.encoding());
    a_.store_area(slot_for(rcx), rcx);
    mark(rcx);
    a_.load_area(rcx, offsetof(ThreadArea, alignment_check));
    a_.jump_if_rcx_is_zero(Emitter::jump_length);
    auto* const is_set = a_.jump();
    const auto* const back = a_.position();
    give_back(rcx);
    late([this, is_set, back] {
        a_.join(is_set);
        a_.store_area(slot_for(rax), rax);
        a_.load_from(rax, rsp, 0, 8);
        a_.lea(rax, rax, rcx, 1, 0);  // without changing flags
        a_.store_to(rsp, 0, rax);
        a_.load_area(rax, slot_for(rax));
        a_.jump_to(back);
    });
}

void UnitCompiler::write_with_memory_at(const Instruction& instruction, HostRegister borrowed) {
    const auto bytes = decoder::with_memory_at(instruction, borrowed);
    if (bytes && explicit_memory(instruction)->memory.segment == Segment::fs) a_.raw(fs_prefix);
    if (bytes) a_.bytes(bytes->view());
    give_back(borrowed);
    if (!bytes) leave_unsupported(instruction);
}

// fs is left to the instruction that uses the address, or to the caller.
void UnitCompiler::address(HostRegister reg, const Instruction& instruction, const Operand& operand,
                           bool with_segment) {
    const auto& memory = operand.memory;
    auto displacement = memory.displacement;
    if (operand.memory.is_rip_relative()) {
        const auto target = rip_target(instruction, operand).value;
        a_.move_imm(reg, memory.address_bits == 32 ? target & 0xffffffffu : target);
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
    if (!with_segment || memory.segment != Segment::gs) return;
    // reg + the guest's gs base, without touching flags and with no other register.
    free_stream_register();
    a_.load_area(stream_register, offsetof(ThreadArea, guest_gs));
    a_.lea(reg, reg, stream_register, 1, 0);
    if (uses_stream_register(instruction)) to_guest();
}

// ---- Captures

void UnitCompiler::store_value(HostRegister reg) {
    a_.store_to(stream_register, value_offset_, reg);
    value_offset_ += 8;
}

// What is written down of a block, in this version.
const std::vector<trace::Slot>& UnitCompiler::slots_of(std::size_t block) const {
    return unit_.version == Version::accesses ? unit_.blocks[block]->accesses
                                              : unit_.blocks[block]->slots;
}

void UnitCompiler::capture_before(std::size_t block, std::size_t index) {
    if (unit_.version == Version::timed) return time_loads(block, index);
    if (unit_.version == Version::lean) return;
    const auto& slots = slots_of(block);
    const auto& instruction = at(block, index);
    for (; next_slot_ < slots.size(); ++next_slot_) {
        const auto& slot = slots[next_slot_];
        if (slot.instruction != index || slot.kind == Capture::destination_values) return;
        const auto& operand = instruction.operands()[slot.operand];
        constexpr auto reg = decoder::rax;
        if (mentions(operand, stream_register)) to_guest();
        a_.store_area(slot_for(reg), reg);
        mark(reg);
        address(reg, instruction, operand, true);
        const bool in_fs = operand.memory.segment == Segment::fs;
        if (slot.kind == Capture::memory_addresses) {
            if (in_fs) {
                free_stream_register();
                a_.read_fs_base(stream_register);
                a_.lea(reg, reg, stream_register, 1, 0);
            }
        } else {
            mark(reg);
            if (in_fs) a_.raw(fs_prefix);
            a_.load_from(reg, reg, 0, slot.bits / 8u);
        }
        to_stream();
        mark(reg);
        store_value(reg);
        give_back(reg);
    }
}

// Loads through gs are left out: our own gs is in the way, and few programs have any.
void UnitCompiler::time_loads(std::size_t block, std::size_t index) {
    const auto& accesses = unit_.blocks[block]->accesses;
    const auto& instruction = at(block, index);
    for (; next_slot_ < accesses.size() && accesses[next_slot_].instruction == index;
         ++next_slot_) {
        const auto& operand = instruction.operands()[accesses[next_slot_].operand];
        if (trace::is_certain_load(operand) && operand.memory.segment != Segment::gs)
            time_load(instruction, block, next_slot_);
    }
}

void UnitCompiler::time_load(const Instruction& instruction, std::size_t block,
                             std::size_t access) {
    constexpr auto rax = decoder::rax, rcx = decoder::rcx, rdx = decoder::rdx;
    const auto* operand = &instruction.operands()[unit_.blocks[block]->accesses[access].operand];
    if (mentions(*operand, stream_register)) to_guest();
    a_.store_area(offsetof(ThreadArea, rcx), rcx);
    mark(rcx);
    a_.load_area(rcx, offsetof(ThreadArea, loads_left));
    a_.lea(rcx, rcx, none, 1, -1);
    a_.store_area(offsetof(ThreadArea, loads_left), rcx);
    a_.jump_if_rcx_is_zero(Emitter::short_jump_length);
    a_.jump_short(Emitter::jump_length);
    auto* const to_timed = a_.jump();
    const auto* const back = a_.position();
    a_.load_area(rcx, offsetof(ThreadArea, rcx));
    mark();
    late([this, &instruction, operand, block, access, to_timed, back] {
        a_.join(to_timed);
        mark(rcx);
        a_.store_area(offsetof(ThreadArea, rax), rax);
        a_.store_area(offsetof(ThreadArea, rdx), rdx);
        mark(Mark::timing);
        a_.load_area(rcx, offsetof(ThreadArea, rcx));
        address(rcx, instruction, *operand, false);
        if (operand->memory.segment == Segment::fs) {
            a_.read_fs_base(rdx);
            a_.lea(rcx, rcx, rdx, 1, 0);
        }
        a_.wait_for_loads();
        a_.read_clock();
        a_.store_area(third_temp, rax);
        a_.wait_for_loads();
        a_.load_from(rdx, rcx, 0, 1);
        a_.wait_for_loads();
        a_.read_clock();
        a_.load_area(rdx, offsetof(ThreadArea, reading));
        a_.store_to(rdx, offsetof(LoadReading, end), rax, 4);
        a_.load_area(rax, third_temp);
        a_.store_to(rdx, offsetof(LoadReading, begin), rax, 4);
        a_.store_to(rdx, offsetof(LoadReading, address), rcx);
        a_.store_constant(rdx, offsetof(LoadReading, block),
                          static_cast<std::uint32_t>(unit_.blocks[block]->id));
        a_.store_constant(rdx, offsetof(LoadReading, access), static_cast<std::uint32_t>(access));
        a_.load_from(rax, rdx, offsetof(LoadReading, next), 8);
        a_.store_area(offsetof(ThreadArea, loads_left), rax);
        a_.lea(rdx, rdx, none, 1, sizeof(LoadReading));
        a_.store_area(offsetof(ThreadArea, reading), rdx);
        a_.load_area(rdx, offsetof(ThreadArea, rdx));
        a_.load_area(rax, offsetof(ThreadArea, rax));
        mark(rcx);
        a_.jump_to(back);
    });
}

void UnitCompiler::store_general(std::uint8_t guest_register) {
    to_stream();
    if (guest_register != stream_register) return store_value(guest_register);
    a_.store_area(slot_for(decoder::rax), decoder::rax);
    mark(decoder::rax);
    a_.load_area(decoder::rax, offsetof(ThreadArea, r15));
    store_value(decoder::rax);
    give_back(decoder::rax);
}

void UnitCompiler::capture_after(std::size_t block, std::size_t index) {
    if (unit_.version != Version::values) return;
    const auto& slots = unit_.blocks[block]->slots;
    for (; next_slot_ < slots.size() && slots[next_slot_].instruction == index; ++next_slot_) {
        const auto& reg = at(block, index).operands()[slots[next_slot_].operand].reg;
        switch (reg.kind) {
            case RegisterKind::vector:
                to_stream();
                a_.store_vector(stream_register, value_offset_, reg.number, has_avx_);
                value_offset_ += 8;
                break;
            case RegisterKind::mask:
                to_stream();
                a_.store_mask(stream_register, value_offset_, reg.number, has_wide_masks_);
                value_offset_ += 8;
                break;
            default:
                store_general(reg.number);
                break;
        }
        mark();
    }
}

// loop changes rcx and branches: what it will hold is written down before.
void UnitCompiler::capture_counter(std::size_t block, std::size_t index) {
    if (unit_.version != Version::values) return;
    const auto& slots = unit_.blocks[block]->slots;
    for (; next_slot_ < slots.size() && slots[next_slot_].instruction == index; ++next_slot_) {
        to_stream();
        a_.store_area(slot_for(decoder::rax), decoder::rax);
        mark(decoder::rax);
        a_.lea(decoder::rax, decoder::rcx, none, 1, -1, slots[next_slot_].bits == 32);
        store_value(decoder::rax);
        give_back(decoder::rax);
    }
}

// ---- Branches and exits

void UnitCompiler::write_branch(std::size_t block) {
    const auto& branch = unit_.blocks[block]->last();
    const auto* const next = next_of(block);
    switch (branch.flow) {
        case Flow::conditional:
            write_conditional(block);
            return;
        case Flow::jump:
            if (!next) leave_directly(branch.target);
            return;
        case Flow::call:
            push_return_address(branch);
            if (!next) leave_directly(branch.target);
            return;
        case Flow::indirect_jump:
        case Flow::indirect_call:
        case Flow::return_:
            if (branch.flow != Flow::return_ && branch.operands()[0].bits != 64)
                return leave_unsupported(branch);
            write_target(branch);
            if (next)
                expect_target(next->start);
            else
                leave_indirectly();
            return;
        case Flow::system_call:
            leave_with_system_call(branch.end());
            return;
        case Flow::trap:
            if (!may_be_copied(branch)) return leave_unsupported(branch);
            write_plain(branch);
            leave_directly(branch.end());
            return;
        case Flow::next:
            return;
    }
}

// In one store, as the guest would: the return would wait until two have left the store buffer.
void UnitCompiler::push_return_address(const Instruction& call) {
    const auto address = call.end().value;
    const auto narrow = static_cast<std::int32_t>(address);
    if (static_cast<std::int64_t>(address) == narrow) {
        a_.push_constant(narrow);
        return;
    }
    late([this, address, place = a_.push_memory()] {
        a_.align(sizeof address);
        a_.join(place);
        a_.data(address);
    });
}

void UnitCompiler::write_conditional(std::size_t block) {
    const auto& branch = unit_.blocks[block]->last();
    if (branch.mnemonic == Mnemonic::xbegin) {
        // A transaction may fail for any reason, and here it always does.
        a_.move_imm(decoder::rax, 0);
        leave_directly(branch.target);
        return;
    }
    const auto* const next = next_of(block);
    const bool taken_goes_on =
        next && next->start == branch.target && branch.target != branch.end();
    const auto aside = taken_goes_on ? branch.end() : branch.target;
    if (const auto condition = condition_of(branch)) {
        late([this, jump = a_.jump_if(taken_goes_on ? !*condition : *condition),
              exit = add_exit(ExitKind::direct, aside)] {
            a_.join(jump);
            jump_to_exit(exit);
        });
    } else {
        capture_counter(block, unit_.blocks[block]->instructions.size() - 1);
        write_counted(branch, taken_goes_on, add_exit(ExitKind::direct, aside));
    }
    if (!next) leave_directly(branch.end());
}

// loop, jrcxz and their like reach 127 bytes only: just over a jump.
void UnitCompiler::write_counted(const Instruction& branch, bool taken_goes_on, std::size_t exit) {
    auto bytes = branch.bytes;
    bytes[branch.length - 1u] =
        static_cast<std::byte>(taken_goes_on ? Emitter::jump_length : Emitter::short_jump_length);
    a_.bytes({bytes.data(), branch.length});
    if (!taken_goes_on) a_.jump_short(Emitter::jump_length);
    late([this, jump = a_.jump(), exit] {
        a_.join(jump);
        jump_to_exit(exit);
    });
}

// The guest's rcx is in the area meanwhile.
void UnitCompiler::write_target(const Instruction& branch) {
    if (branch.flow == Flow::return_) {
        a_.store_area(slot_for(decoder::rcx), decoder::rcx);
        a_.pop(decoder::rcx);
        const auto& first = branch.operands()[0];
        if (first.kind == OperandKind::immediate)
            a_.lea(decoder::rsp, decoder::rsp, none, 1,
                   static_cast<std::int32_t>(first.immediate & 0xffff));
        return;
    }
    load_target(branch);
    if (branch.flow == Flow::indirect_call) push_return_address(branch);
}

void UnitCompiler::load_target(const Instruction& branch) {
    const auto& operand = branch.operands()[0];
    if (mentions(operand, stream_register)) to_guest();
    a_.store_area(slot_for(decoder::rcx), decoder::rcx);
    mark(decoder::rcx);
    if (operand.kind == OperandKind::reg) {
        if (operand.reg.number != decoder::rcx) a_.move(decoder::rcx, operand.reg.number);
        return;
    }
    const auto& memory = operand.memory;
    if (memory.base && !operand.memory.is_rip_relative() && memory.address_bits == 64 &&
        memory.segment != Segment::gs) {
        if (memory.segment == Segment::fs) a_.raw(fs_prefix);
        a_.load_at(decoder::rcx, memory.base.number, memory.index ? memory.index.number : none,
                   memory.scale, static_cast<std::int32_t>(memory.displacement));
        return;
    }
    address(decoder::rcx, branch, operand, true);
    mark(decoder::rcx);
    if (memory.segment == Segment::fs) a_.raw(fs_prefix);
    a_.load_from(decoder::rcx, decoder::rcx, 0, 8);
}

// The unit goes on where the branch usually goes.
void UnitCompiler::expect_target(Address expected) {
    const auto exit = add_exit(ExitKind::indirect, {});
    a_.store_area(offsetof(ThreadArea, rdx), decoder::rdx);
    a_.move_imm(decoder::rdx, -expected.value);
    a_.lea(decoder::rcx, decoder::rcx, decoder::rdx, 1, 0);
    a_.jump_if_rcx_is_zero(Emitter::jump_length);
    late([this, exit, expected, jump = a_.jump()] {
        a_.join(jump);
        a_.move_imm(decoder::rdx, expected.value);
        a_.lea(decoder::rcx, decoder::rcx, decoder::rdx, 1, 0);
        write_id(exit);
        look_up();
    });
    a_.load_area(decoder::rdx, offsetof(ThreadArea, rdx));
    a_.load_area(decoder::rcx, slot_for(decoder::rcx));
    mark();
}

std::size_t UnitCompiler::add_exit(ExitKind kind, Address target) {
    exits_.push_back({.kind = kind, .segment = directory_.segment_of(executed_), .target = target});
    return exits_.size() - 1;
}

void UnitCompiler::write_id(std::size_t exit) {
    to_stream();
    mark();
    a_.store_id(static_cast<std::uint32_t>(exits_[exit].segment));
    a_.advance_stream(value_offset_);
    state_ = {};
}

void UnitCompiler::jump_to_exit(std::size_t exit) {
    write_id(exit);
    exits_[exit].jump = a_.patchable_jump();
    late([this, exit] {
        a_.join(exits_[exit].jump);
        const auto number = unit_.first_exit + static_cast<std::uint32_t>(exit);
        a_.store_area_constant(offsetof(ThreadArea, exit), number);
        ask(Request::link, exits_[exit].target);
    });
}

void UnitCompiler::leave_directly(Address target) {
    jump_to_exit(add_exit(ExitKind::direct, target));
    left_ = true;
}

void UnitCompiler::leave_indirectly() {
    mark(decoder::rcx);
    const auto exit = add_exit(ExitKind::indirect, {});
    write_id(exit);
    a_.store_area(offsetof(ThreadArea, rdx), decoder::rdx);
    look_up();
    left_ = true;
}

// The target in rcx; rcx and rdx are in the area.
void UnitCompiler::look_up() {
    a_.zero_extend_word(decoder::rdx, decoder::rcx);
    a_.jump_through_table(
        tables_ + static_cast<std::uint32_t>(static_cast<std::size_t>(unit_.version) * table_size),
        decoder::rdx);
}

// The profiler sees the thread at the system call and takes it from there. What follows is for the
// case that there is no profiler any more.
void UnitCompiler::leave_with_system_call(Address next) {
    const auto exit = add_exit(ExitKind::system_call, next);
    write_id(exit);
    a_.system_call();
    a_.move_imm(decoder::rcx, next.value);
    exits_[exit].jump = a_.patchable_jump();
    late([this, exit] {
        a_.join(exits_[exit].jump);
        a_.store_area_constant(offsetof(ThreadArea, exit),
                               unit_.first_exit + static_cast<std::uint32_t>(exit));
        ask(Request::link, exits_[exit].target);
    });
    left_ = true;
}

void UnitCompiler::leave_unsupported(const Instruction& instruction) {
    to_stream();
    mark();
    a_.store_area_constant(offsetof(ThreadArea, exit), number_);
    ask(Request::unsupported, instruction.address);
    left_ = true;
}

void UnitCompiler::ask(Request request, Address pc) {
    a_.store_area_constant(offsetof(ThreadArea, pc), pc.value);
    a_.store_area_half(offsetof(ThreadArea, request), static_cast<std::uint32_t>(request));
    a_.jump_to(arena_->leave);
}

}  // namespace shadowprof::emu::translator
