// Functions that compiled code calls while the guest's vector state is in the real registers. They
// are compiled for general registers only, and call nothing that is not, except through
// Core::call_with_host_state.
#pragma once

#include "emu/interpreter/core.h"

namespace shadowprof::emu {

// Five pages that stand for guest memory when an access cannot go there directly, because it
// crosses a page or part of it is not accessible. The access begins at the one of the five from
// which its pages are accessible or not as the guest's are. The host's CPU then decides whether it
// faults, so that an instruction that touches less than its operand (a masked store) is carried out
// as it should be.
//
//     none | none | read-write | read-write | none
inline constexpr unsigned substitute_pages = 5;

struct StringOperation {
    enum Kind : std::uint8_t { movs, stos, lods, scas, cmps };
    Kind kind;
    std::uint8_t size;     // 1, 2, 4, 8
    std::uint8_t repeat;   // 0, 1: rep or repe, 2: repne
    bool narrow;           // 32-bit addresses and counter
    std::uint8_t segment;  // of the source: 0, 1: fs, 2: gs

    constexpr std::uint32_t packed() const {
        return kind | size << 4 | repeat << 8 | (narrow ? 1u << 12 : 0) | segment << 16;
    }
    static constexpr StringOperation unpack(std::uint32_t p) {
        return {static_cast<Kind>(p & 15), static_cast<std::uint8_t>(p >> 4 & 15),
                static_cast<std::uint8_t>(p >> 8 & 15), (p >> 12 & 1) != 0,
                static_cast<std::uint8_t>(p >> 16)};
    }
};

extern "C" {

// Where the access of slow_address and slow_access is to go. Enters the page into the TLB if later
// accesses may use it. Otherwise the access is `unfinished`, and finish_write has to be called
// after it.
std::byte* shadowprof_resolve(Core* core) noexcept;
void shadowprof_finish_write(Core* core) noexcept;
// The bytes at slow_address (size in slow_access, up to 8), as far as they can be read.
std::uint64_t shadowprof_peek(Core* core) noexcept;
// See Capture::error_before; the place from fs on is in slow_address.
std::uint64_t shadowprof_error(Core* core) noexcept;

void shadowprof_string(Core* core, std::uint32_t operation) noexcept;
std::uint64_t shadowprof_rflags(Core* core) noexcept;
// popf with an operand of 2 or 8 bytes.
void shadowprof_set_rflags(Core* core, std::uint64_t value, std::uint32_t size) noexcept;
// enter with 8 or 2 byte operands; level in the low 5 bits of the argument, frame size above bit 8,
// operand size above bit 24.
void shadowprof_enter(Core* core, std::uint32_t argument) noexcept;
// movdir64b: 64 bytes from slow_address to the address in scratch.
void shadowprof_move_64_bytes(Core* core) noexcept;
}

std::uint64_t rflags_of(const Core& core);
void set_status_flags(Core& core, std::uint64_t rflags);

}  // namespace shadowprof::emu
