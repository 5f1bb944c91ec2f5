// The CPU's side of a comparison: a stopped thread executes its next instructions one by one.
#pragma once

#include <cstdint>

#include "emu/common/guest_code.h"
#include "ptrace/tracer.h"
#include "recorded_trace.h"

namespace shadowprof::equivalence {

class Stepping {
  public:
    Stepping(ptrace::Tracer& tracer, emu::GuestCode& code) : tracer_(tracer), code_(code) {}

    // False if a signal came, or the program cannot be stepped: trace.end_reason says which.
    bool step(ptrace::Thread& thread, std::uint64_t instructions, RecordedTrace& trace);
    // A signal that arrived meanwhile: resume the thread with it.
    int undelivered_signal() const { return undelivered_signal_; }
    void forget_signal() { undelivered_signal_ = 0; }

  private:
    ptrace::Tracer& tracer_;
    emu::GuestCode& code_;
    int undelivered_signal_ = 0;
};

}  // namespace shadowprof::equivalence
