// Which signals are faults.
#pragma once

#include <csignal>
#include <cstdint>

#include "base/signal_bit.h"
#include "ptrace/tracer.h"

namespace shadowprof::emu::translator {

inline constexpr std::uint64_t fault_signals = signal_bit(SIGSEGV) | signal_bit(SIGBUS) |
                                               signal_bit(SIGFPE) | signal_bit(SIGILL) |
                                               signal_bit(SIGTRAP);

// Whether the signal was raised by the instruction that the thread executes, and not sent.
inline bool is_fault(const ptrace::Event& event) {
    return (fault_signals & signal_bit(event.signal)) != 0 && event.info.si_code > 0;
}

}  // namespace shadowprof::emu::translator
