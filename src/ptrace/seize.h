// Seizing a thread, and saying why that failed. Private to the room.
#pragma once

#include <sys/ptrace.h>
#include <sys/types.h>

#include <string>

namespace shadowprof::ptrace {

inline constexpr unsigned long seize_options =
    PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;

// False, and errno is set, if that fails.
bool seize(pid_t tid);

// One line with the remedy, for a process whose seizing failed with `error`.
std::string why_not_seized(pid_t pid, int error);

}  // namespace shadowprof::ptrace
