// Exceptions that the host's CPU raises in compiled code (a division by zero, an unmasked
// floating-point exception, an inaccessible substitute page, an instruction that this CPU lacks)
// arrive in the profiler as signals. They belong to the guest and end its run.
#pragma once

#include "emu/interpreter/core.h"

namespace shadowprof::emu {

// Installs handlers for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGTRAP once. Signals that compiled
// code did not raise go to the handlers that were there before.
void catch_host_faults();

// While it exists, such signals of this thread in the code of this Core make the code leave with
// ExitKind::fault.
class FaultScope {
  public:
    explicit FaultScope(Core& core);
    ~FaultScope();
    FaultScope(const FaultScope&) = delete;
    FaultScope& operator=(const FaultScope&) = delete;

  private:
    Core* outer_;
};

}  // namespace shadowprof::emu
