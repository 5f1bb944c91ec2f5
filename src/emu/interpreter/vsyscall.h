// The vsyscall page: three system calls at fixed addresses, from the time before there was a vDSO.
// The page cannot be read. The kernel carries out the calls when a program jumps there, and so do
// we.
#pragma once

#include <optional>

#include "base/address.h"
#include "emu/interpreter/memory_view.h"

namespace shadowprof::emu {

inline constexpr AddressRange vsyscall_page{{0xffffffffff600000}, {0xffffffffff601000}};

constexpr bool is_vsyscall(Address at) {
    return vsyscall_page.contains(at);
}

// Carries out the call at that address, with its arguments and its result in the general registers,
// and the return from it. Returns the address to go on at; nothing if that faults.
std::optional<Address> emulate_vsyscall(Address at, std::uint64_t* general, MemoryView& view);

}  // namespace shadowprof::emu
