// Processor time, by one of the clocks that count it.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "machine/tuning.h"
#include "proc/process_info.h"

namespace shadowprof::machine {

inline Seconds computed(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return Seconds{static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec)};
}

// How much of the time a process has a processor, of late: 1 if it has one all the time, or more.
class ComputingShare {
  public:
    explicit ComputingShare(pid_t pid)
        : pid_(pid), computed_(proc::process_cpu_time(pid).value_or(0)) {}

    // It could not compute for so long since the last time.
    void look(Seconds held) {
        const auto now = Clock::now();
        const auto computed = proc::process_cpu_time(pid_).value_or(computed_);
        const Seconds could = now - std::exchange(last_look_, now) - held;
        const std::chrono::nanoseconds did{computed - std::exchange(computed_, computed)};
        if (could <= Seconds{0}) return;
        of_late_ += (std::clamp(did / could, 0.0, 1.0) - of_late_) / tuning::looks_at_computing;
    }
    double of_late() const { return of_late_; }

  private:
    pid_t pid_;
    std::uint64_t computed_;  // nanoseconds, at the last look
    Clock::time_point last_look_ = Clock::now();
    double of_late_ = 1;
};

}  // namespace shadowprof::machine
