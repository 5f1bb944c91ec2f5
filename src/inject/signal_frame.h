// A signal frame: the kernel leaves one on the stack for a handler, and rt_sigreturn(2) takes a
// thread's whole state from it, in one step that cannot be interrupted. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ptrace/registers.h"

namespace shadowprof::inject {

// Writes a frame into `into`, which the target has at `place`, a multiple of 64. Rt_sigreturn
// called with rsp = place sets the thread's registers, extended state and signal mask, and leaves
// its alternate stack as it is. False if there is no room, or the processor has no XSAVE.
bool write_signal_frame(std::span<std::byte> into, Address place, const ptrace::Registers&,
                        const ptrace::ExtendedState&, std::uint64_t signal_mask);

}  // namespace shadowprof::inject
