// A replica on its way: the stopped thread has been asked to fork it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "proc/identity.h"
#include "proc/process_info.h"
#include "ptrace/registers.h"

namespace shadowprof::inject {

struct PendingReplica {
    std::uint32_t slot = 0;    // of the shared area
    std::uint32_t number = 0;  // of the fork: tells a slot's uses apart
    // Of the program, where it was stopped; outside of system calls and restartable sequences.
    ptrace::Registers registers;
    ptrace::ExtendedState extended;
    Clock::time_point begun;
    std::uint64_t signal_mask = 0;  // of the program
    pid_t thread = 0;               // the one that was stopped
    proc::SignalSets signals;       // of that thread
    std::optional<proc::Identity> identity;
};

}  // namespace shadowprof::inject
