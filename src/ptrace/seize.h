// Taking hold of a thread, and saying why it cannot be. Private to the room.
#pragma once

#include <sys/ptrace.h>
#include <sys/types.h>

#include <string>

namespace shadowprof::ptrace {

inline constexpr unsigned long seize_options =
    PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;

// False and errno if not.
bool seize(pid_t tid);

// One line with the remedy, for a process whose seizing failed with `error`.
std::string why_not_seized(pid_t pid, int error);

}  // namespace shadowprof::ptrace
