// The call stack of a stopped thread by remote unwinding (libunwind). The snapshot is taken while
// the thread is stopped and is cheap; unwinding it is slow and may happen later, on any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "proc/maps.h"
#include "ptrace/registers.h"
#include "trace/signal_frames.h"

namespace shadowprof::ptrace {

struct StackSnapshot {
    pid_t pid = 0;
    Registers registers;
    std::vector<std::byte> bytes;  // from rsp on
    // Of a thread that sleeps and was not stopped: of its registers only rip and rsp are known.
    bool is_of_sleeper = false;
};

StackSnapshot snapshot_stack(pid_t pid, const Registers& registers);

// The process may have long gone on, or be gone: the mappings are those of then, and code that the
// process no longer has is read from its files. Innermost first: the interrupted instruction, then
// return addresses. At least one entry; shorter than the truth where unwind information is missing.
// Of the stack only the snapshot counts.
std::vector<Address> unwind(const StackSnapshot& snapshot,
                            const std::shared_ptr<const proc::Maps>& maps,
                            std::size_t most_frames = 128);

// Of a stack that is deeper than the snapshot, or of several (signal handlers may have one), the
// rest is read from the process as it is now.
struct StackWithSignals {
    std::vector<Address> frames;
    std::optional<trace::SignalFrames> signals;  // if the stack was unwound to its end
};
StackWithSignals unwind_with_signals(const StackSnapshot& snapshot,
                                     const std::shared_ptr<const proc::Maps>& maps,
                                     std::size_t most_frames = 128);

}  // namespace shadowprof::ptrace
