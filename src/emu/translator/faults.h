// Which signals are faults.
#pragma once

#include <csignal>

#include "ptrace/tracer.h"

namespace shadowprof::emu::translator {

// Whether the signal was raised by the instruction that the thread executes, and not sent.
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
