// The vsyscall page: three system calls at fixed addresses, from before there was a vDSO. Its page
// cannot be read; the kernel carries the calls out when a program jumps there, and so do we.
#pragma once

#include <optional>

#include "base/address.h"
#include "emu/interpreter/memory_view.h"

namespace shadowprof::emu {

inline constexpr AddressRange vsyscall_page{{0xffffffffff600000}, {0xffffffffff601000}};

constexpr bool is_vsyscall(Address at) {
    return vsyscall_page.contains(at);
}

// The call at that address, with its arguments in and its result to the general registers, and the
// return from it. The address to go on at; nothing if that faults.
std::optional<Address> emulate_vsyscall(Address at, std::uint64_t* general, MemoryView& view);

}  // namespace shadowprof::emu
