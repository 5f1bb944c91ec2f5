// Processor time, by one of the clocks that count it.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "ptrace/tracer.h"
#include "shadow/options.h"

namespace shadowprof::shadow {

inline Seconds computed(clockid_t clock) {
    timespec time{};  // as of a process that is gone
    clock_gettime(clock, &time);
    return Seconds{static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec)};
}

// How much of the time a process has a processor, of late: 1 if it has one all the time, or more.
class ComputingShare {
  public:
    explicit ComputingShare(pid_t pid) {
        clock_getcpuclockid(pid, &clock_);
        before_ = computed(clock_);
    }

    // It could not compute for so long since the last time.
    void look(Seconds held) {
        const auto now = ptrace::Clock::now();
        const auto computes = computed(clock_);
        const Seconds could = now - std::exchange(last_look_, now) - held;
        const auto did = computes - std::exchange(before_, computes);
        if (could <= Seconds{0}) return;
        of_late_ += (std::clamp(did / could, 0.0, 1.0) - of_late_) / looks_remembered;
    }
    double of_late() const { return of_late_; }

  private:
    static constexpr double looks_remembered = 8;

    clockid_t clock_ = CLOCK_REALTIME;  // if it has none: as if it computed all the time
    Seconds before_{0};
    ptrace::Clock::time_point last_look_ = ptrace::Clock::now();
    double of_late_ = 1;
};

}  // namespace shadowprof::shadow
