#include "emu/translator/unit_recording.h"

#include <cstddef>
#include <span>

namespace shadowprof::emu::translator {

using decoder::Instruction;
using decoder::RegisterKind;
using decoder::Segment;
using trace::Capture;

namespace {

constexpr HostRegister none = Emitter::none;

}  // namespace

RecordingWriter::RecordingWriter(UnitWriter& writer)
    : w_(writer),
      a_(writer.emitter()),
      has_avx_(__builtin_cpu_supports("avx")),
      has_wide_masks_(__builtin_cpu_supports("avx512bw")) {}

// The slots of a block that this version records.
const std::vector<trace::Slot>& RecordingWriter::slots_of(std::size_t block) const {
    return w_.unit().version == Version::accesses ? w_.unit().blocks[block]->accesses
                                                  : w_.unit().blocks[block]->slots;
}

// In the version for values they are among these.
void RecordingWriter::store_arguments(const trace::Block& block) {
    for (std::size_t n = 0; n < block.arguments(); ++n) {
        store_general(block.slots[n].operand);
        w_.mark();
    }
}

void RecordingWriter::before(std::size_t block, std::size_t index) {
    if (index == 0 && w_.unit().version != Version::values)
        store_arguments(*w_.unit().blocks[block]);
    if (w_.unit().version == Version::timed) return time_loads(block, index);
    if (w_.unit().version == Version::lean) return;
    const auto& slots = slots_of(block);
    const auto& instruction = w_.at(block, index);
    for (; next_slot_ < slots.size(); ++next_slot_) {
        const auto& slot = slots[next_slot_];
        if (slot.instruction != index || slot.kind == Capture::destination_values) return;
        if (slot.kind == Capture::arguments || slot.kind == Capture::register_before) {
            store_general(slot.operand);
            w_.mark();
            continue;
        }
        if (slot.kind == Capture::error_before) {
            store_error(slot.displacement);
            continue;
        }
        const auto& operand = instruction.operands()[slot.operand];
        constexpr auto reg = decoder::rax;
        if (mentions(operand, stream_register)) w_.to_guest();
        a_.store_area(slot_for(reg), reg);
        w_.mark(reg);
        w_.address(reg, instruction, operand, true);
        const bool in_fs = operand.memory.segment == Segment::fs;
        if (slot.kind == Capture::memory_addresses) {
            if (in_fs) {
                w_.free_stream_register();
                a_.read_fs_base(stream_register);
                a_.lea(reg, reg, stream_register, 1, 0);
            }
        } else {
            w_.mark(reg);
            if (in_fs) a_.raw(fs_prefix);
            a_.load_from(reg, reg, 0, slot.bits / 8u);
        }
        w_.to_stream();
        w_.mark(reg);
        w_.store_value(reg);
        w_.give_back(reg);
    }
}

// Loads through gs are left out: gs is ours while the code runs, and few programs use it.
void RecordingWriter::time_loads(std::size_t block, std::size_t index) {
    const auto& accesses = w_.unit().blocks[block]->accesses;
    const auto& instruction = w_.at(block, index);
    for (; next_slot_ < accesses.size() && accesses[next_slot_].instruction == index;
         ++next_slot_) {
        const auto& operand = instruction.operands()[accesses[next_slot_].operand];
        if (trace::is_certain_load(operand) && operand.memory.segment != Segment::gs)
            time_load(instruction, block, next_slot_);
    }
}

void RecordingWriter::time_load(const Instruction& instruction, std::size_t block,
                                std::size_t access) {
    constexpr auto rax = decoder::rax, rcx = decoder::rcx, rdx = decoder::rdx;
    const auto* operand =
        &instruction.operands()[w_.unit().blocks[block]->accesses[access].operand];
    if (mentions(*operand, stream_register)) w_.to_guest();
    a_.store_area(offsetof(ThreadArea, rcx), rcx);
    w_.mark(rcx);
    a_.load_area(rcx, offsetof(ThreadArea, loads_left));
    a_.lea(rcx, rcx, none, 1, -1);
    a_.store_area(offsetof(ThreadArea, loads_left), rcx);
    a_.jump_if_rcx_is_zero(Emitter::short_jump_length);
    a_.jump_short(Emitter::jump_length);
    auto* const to_timed = a_.jump();
    const auto* const back = a_.position();
    a_.load_area(rcx, offsetof(ThreadArea, rcx));
    w_.mark();
    w_.late([this, &instruction, operand, block, access, to_timed, back] {
        a_.join(to_timed);
        w_.mark(rcx);
        a_.store_area(offsetof(ThreadArea, rax), rax);
        a_.store_area(offsetof(ThreadArea, rdx), rdx);
        w_.mark(Mark::timing);
        a_.load_area(rcx, offsetof(ThreadArea, rcx));
        w_.address(rcx, instruction, *operand, false);
        if (operand->memory.segment == Segment::fs) {
            a_.read_fs_base(rdx);
            a_.lea(rcx, rcx, rdx, 1, 0);
        }
        // Once for what is in the first level for sure, so that the processor has decoded the code
        // between the clock's two readings, and then for the load.
        a_.store_area(second_temp, rcx);
        a_.load_area(rcx, offsetof(ThreadArea, reading));
        const auto* const time = a_.position();
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
        a_.load_area(rcx, second_temp);
        a_.jump_if_rcx_is_zero(2 * Emitter::store_area_half_length + Emitter::jump_length);
        a_.store_area_constant(second_temp, 0);
        a_.jump_to(time);
        a_.store_constant(rdx, offsetof(LoadReading, block),
                          static_cast<std::uint32_t>(w_.unit().blocks[block]->id));
        a_.store_constant(rdx, offsetof(LoadReading, access), static_cast<std::uint32_t>(access));
        a_.load_from(rax, rdx, offsetof(LoadReading, next), 8);
        a_.store_area(offsetof(ThreadArea, loads_left), rax);
        a_.lea(rdx, rdx, none, 1, sizeof(LoadReading));
        a_.store_area(offsetof(ThreadArea, reading), rdx);
        a_.load_area(rdx, offsetof(ThreadArea, rdx));
        a_.load_area(rax, offsetof(ThreadArea, rax));
        w_.mark(rcx);
        a_.jump_to(back);
    });
}

void RecordingWriter::store_general(std::uint8_t guest_register) {
    w_.to_stream();
    if (guest_register != stream_register) return w_.store_value(guest_register);
    a_.store_area(slot_for(decoder::rax), decoder::rax);
    w_.mark(decoder::rax);
    a_.load_area(decoder::rax, offsetof(ThreadArea, r15));
    w_.store_value(decoder::rax);
    w_.give_back(decoder::rax);
}

// A thread may have no fs yet, where the dynamic loader is at work.
void RecordingWriter::store_error(std::int32_t displacement) {
    constexpr auto rcx = decoder::rcx;
    w_.to_stream();
    a_.store_area(slot_for(rcx), rcx);
    w_.mark(rcx);
    if (displacement == 0) {
        a_.lea(rcx, none, none, 1, 0);
    } else {
        constexpr std::int8_t length_of_both = 6 + 4;
        a_.read_fs_base(rcx);
        a_.jump_if_rcx_is_zero(length_of_both);
        a_.raw(0x8b, 0x89);  // mov ecx, [rcx + displacement]
        a_.bytes(std::as_bytes(std::span{&displacement, 1}));
        a_.raw(0x48, 0x8d, 0x49, 0x01);  // lea rcx, [rcx + 1]
    }
    w_.store_value(rcx);
    w_.give_back(rcx);
}

void RecordingWriter::after(std::size_t block, std::size_t index) {
    if (w_.unit().version != Version::values) return;
    const auto& slots = w_.unit().blocks[block]->slots;
    for (; next_slot_ < slots.size() && slots[next_slot_].instruction == index; ++next_slot_) {
        const auto& reg = w_.at(block, index).operands()[slots[next_slot_].operand].reg;
        switch (reg.kind) {
            case RegisterKind::vector:
                w_.to_stream();
                a_.store_vector(stream_register, w_.next_value(), reg.number, has_avx_);
                break;
            case RegisterKind::mask:
                w_.to_stream();
                a_.store_mask(stream_register, w_.next_value(), reg.number, has_wide_masks_);
                break;
            default:
                store_general(reg.number);
                break;
        }
        w_.mark();
    }
}

void RecordingWriter::counter(std::size_t block, std::size_t index) {
    if (w_.unit().version != Version::values) return;
    const auto& slots = w_.unit().blocks[block]->slots;
    for (; next_slot_ < slots.size() && slots[next_slot_].instruction == index; ++next_slot_) {
        w_.to_stream();
        a_.store_area(slot_for(decoder::rax), decoder::rax);
        w_.mark(decoder::rax);
        a_.lea(decoder::rax, decoder::rcx, none, 1, -1, slots[next_slot_].bits == 32);
        w_.store_value(decoder::rax);
        w_.give_back(decoder::rax);
    }
}

}  // namespace shadowprof::emu::translator
