// The one spelling of ptrace(2), for this room and inject.
#pragma once

#include <sys/ptrace.h>
#include <sys/types.h>

#include <cstdint>

namespace shadowprof::ptrace {

// What ptrace(2) answers: -1 and errno if the thread died or is not stopped.
inline long request(__ptrace_request what, pid_t tid, std::uint64_t address, void* data) {
    return ::ptrace(what, tid, reinterpret_cast<void*>(address), data);
}

inline long request(__ptrace_request what, pid_t tid, std::uint64_t data = 0) {
    return request(what, tid, 0, reinterpret_cast<void*>(data));
}

}  // namespace shadowprof::ptrace
