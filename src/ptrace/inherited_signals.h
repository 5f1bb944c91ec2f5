// The signal mask and the ignored signals that shadowprof was started with. Shadowprof changes its
// own, but a program that it launches must begin with what it would have had without us.
#pragma once

#include <signal.h>

#include <cstdint>

namespace shadowprof::ptrace {

class InheritedSignals {
  public:
    // Called first in main(), before anything is changed; only the first call counts.
    static void remember();

    // In a forked child, before exec. Async-signal-safe.
    static void restore();

  private:
    sigset_t mask_{};
    std::uint64_t ignored_ = 0;  // bit n-1 is signal n
    static InheritedSignals at_start_;
    static bool remembered_;
};

}  // namespace shadowprof::ptrace
