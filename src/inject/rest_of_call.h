// Calls that our interruption broke off half-way.
//
// If a program is interrupted while it writes a megabyte to a pipe, the call returns how much was
// written until then. After a signal programs expect that; but here no signal came, and a program
// may not look: `dd bs=64M` counted such records as full, and lost six in a hundred of its bytes. A
// call that has done nothing yet is issued again (ptrace/interrupted_calls.h). For one that has
// done a part, the thread makes a second call, for the rest, and the program gets the sum.
//
// The thread itself has to add up, for we may be killed before the call is over, and the call may
// take long. So the second call is made by a piece of code that has everything it needs, and leaves
// flags, stack and signal mask as the program has them:
//
//     syscall                      ; for the rest
//     rdx = sign of rax            ; without flags: cqo
//     if rdx == 0: rax += done     ; jrcxz, lea
//     else:        rax = done      ; the next call will report an error
//     restore the arguments
//     complete = number            ; nothing is left but to
//     jump to where the program was
//
// A handler that runs meanwhile returns into this code. If the thread is interrupted in it once
// more, a rest of the rest takes its place, which goes on where this one would have.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/address.h"
#include "ptrace/registers.h"
#include "ptrace/tracer.h"

namespace shadowprof::inject {

struct RestOfCall {
    ptrace::Registers program;  // behind the call that was broken off
    ptrace::Registers rest;     // for the second one: the number in rax, the arguments
    std::uint64_t done = 0;
    std::vector<iovec> pieces;  // for rsi to point to, if there are any

    static constexpr std::size_t most_pieces = 8;
    static constexpr std::size_t room = 256;  // for the code and the pieces
    static constexpr std::size_t call_length = 2;

    // The code for `place`, in memory that the thread can read and execute. It writes `number` to
    // `complete`, which lies within 2 GB.
    std::vector<std::byte> code(Address place, Address complete, std::uint32_t number) const;
    // This rest is what is left of the earlier one, and so of the program's call.
    void continues(const RestOfCall& earlier);
    // Where the thread stands behind the second call.
    static Address behind_call(Address place) { return place + call_length; }
    // The registers to set out with.
    ptrace::Registers at(Address place) const;
};

// Nothing if the stopped thread is not behind a call that did less than it would have done without
// us.
std::optional<RestOfCall> rest_of_call(pid_t process, const ptrace::Thread& stopped);

}  // namespace shadowprof::inject
