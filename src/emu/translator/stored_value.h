// For a slot, translated code writes down the whole register. This takes the slot's value from it.
#pragma once

#include <cstdint>

#include "trace/block.h"

namespace shadowprof::emu::translator {

inline std::uint64_t value_of_slot(const trace::Block& block, const trace::Slot& slot,
                                   std::uint64_t stored) {
    // Instructions are large, and most slots can do without looking at theirs.
    if (slot.bits == 8 && slot.kind == trace::Capture::destination_values) {
        const auto& reg = block.instructions[slot.instruction].operands()[slot.operand].reg;
        if (reg.high_byte) stored >>= 8;
    }
    return stored & (~std::uint64_t{0} >> (64 - slot.bits));
}

}  // namespace shadowprof::emu::translator
