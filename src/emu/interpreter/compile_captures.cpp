// What the capture plan asks for: values and addresses of operands, written down beside the code.
#include <algorithm>
#include <cstddef>

#include "emu/interpreter/block_compiler.h"

namespace shadowprof::emu {

using decoder::rax;
using trace::Capture;

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
