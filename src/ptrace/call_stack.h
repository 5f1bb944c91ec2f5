// The call stack of a stopped thread by remote unwinding (libunwind). The snapshot is taken while
// the thread is stopped and is cheap; unwinding it is slow and may happen later, on any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "ptrace/registers.h"

namespace shadowprof::ptrace {

struct StackSnapshot {
    pid_t pid = 0;
    Registers registers;
    std::vector<std::byte> bytes;  // from rsp on
};

StackSnapshot snapshot_stack(pid_t pid, const Registers& registers);

// Innermost first: the interrupted instruction, then return addresses. At least one entry; shorter
// than the truth where unwind information is missing.
std::vector<Address> unwind(const StackSnapshot& snapshot, std::size_t most_frames = 128);

}  // namespace shadowprof::ptrace
