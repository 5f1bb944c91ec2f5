// Which signals are faults of the code that a thread executes.
#pragma once

#include <csignal>

#include "ptrace/tracer.h"

namespace shadowprof::emu::translator {

// Raised by the instruction that the thread executes, not sent by somebody.
inline bool is_fault(const ptrace::Event& event) {
    switch (event.signal) {
        case SIGSEGV:
        case SIGBUS:
        case SIGFPE:
        case SIGILL:
        case SIGTRAP:
            return event.info.si_code > 0;
        default:
            return false;
    }
}

}  // namespace shadowprof::emu::translator
