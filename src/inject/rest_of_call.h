// Calls that our interruption broke off half-way.
//
// Who writes a megabyte to a pipe and is interrupted is told how much was written until then. After
// a signal that is what programs expect; but this one had no signal, and may not look: `dd bs=64M`
// counted such records as full, and lost six in a hundred of its bytes. A call that has done
// nothing yet is issued again (interrupted_calls.h). This one has, so the thread makes a second
// call, for the rest, and the program is told the sum.
//
// Nobody but the thread itself may have to add up, for we may be killed before the call is over,
// and it may take long. So the second call is made by a piece of code that knows everything that is
// to be known, and leaves flags, stack and signal mask as the program has them:
//
//     syscall                      ; for the rest
//     rdx = sign of rax            ; without flags: cqo
//     if rdx == 0: rax += done     ; jrcxz, lea
//     else:        rax = done      ; an error is told by the next call
//     restore the arguments
//     complete = number            ; nothing is left but to
//     jump to where the program was
//
// A handler that runs meanwhile returns into it. If the thread is interrupted in it once more, a
// rest of the rest takes its place, which goes on where this one would have.
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
    std::vector<iovec> pieces;  // rsi is to point to them, if there are any

    static constexpr std::size_t most_pieces = 8;
    static constexpr std::size_t room = 256;  // for the code and the pieces
    static constexpr std::size_t call_length = 2;

    // At `place`, in memory that the thread can read and execute; it writes `number` to `complete`,
    // which is within 2 GB.
    std::vector<std::byte> code(Address place, Address complete, std::uint32_t number) const;
    // This is what is left of that one, so it is all that is left of the program's call.
    void continues(const RestOfCall& earlier);
    // Where the thread is behind the second call.
    static Address behind_call(Address place) { return place + call_length; }
    // To set out with.
    ptrace::Registers at(Address place) const;
};

// Nothing if the stopped thread is not behind a call that has done less than it should have, or
// would have without us.
std::optional<RestOfCall> rest_of_call(pid_t process, const ptrace::Thread& stopped);

}  // namespace shadowprof::inject
