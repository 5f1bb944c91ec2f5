// Where a unit's code says where it is itself, or where the guest's code is: what has to be written
// anew if a later run has them elsewhere (kept/kept_units.h).
#pragma once

#include <cstdint>

namespace shadowprof::emu::translator {

enum class Refers : std::uint8_t {
    guest,            // 64 bits: an address of the guest
    guest_negative,   // 64 bits: one, negated
    guest_in_halves,  // the constants of Emitter::store_area_constant()
    guest_relative,   // 32 bits: the distance to something of the guest's
    guest_narrow,     // too short for another place of the guest's code
    unit_in_halves,   // the unit's own place
    fixed_code,       // 32 bits: the distance to the arena's fixed code
};

struct Relocation {
    std::uint32_t offset : 28;  // from the unit's begin
    std::uint32_t refers : 4;
};
static_assert(sizeof(Relocation) == 4);

}  // namespace shadowprof::emu::translator
