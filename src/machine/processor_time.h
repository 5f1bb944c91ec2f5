// Processor time, by one of the clocks that count it.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "machine/tuning.h"
#include "proc/process_info.h"
#include "proc/processors.h"

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
    // If it is gone, by what it did of late.
    Seconds so_far() const {
        if (const auto now = proc::process_cpu_time(pid_)) return std::chrono::nanoseconds{*now};
        return std::chrono::nanoseconds{computed_} + of_late_ * Seconds{Clock::now() - last_look_};
    }

  private:
    pid_t pid_;
    std::uint64_t computed_;  // nanoseconds, at the last look
    Clock::time_point last_look_ = Clock::now();
    double of_late_ = 1;
};

// How many processors had nothing to do of late but what this process gives them, or has others do
// at the lowest priority. Of one thread, which looks: where it has to wait for a processor, what we
// compute is no longer what nobody else wanted to.
class SpareProcessors {
  public:
    void look() {
        const auto now = Clock::now();
        if (now < next_look_) return;
        next_look_ = now + tuning::between_looks_at_processors;
        const auto spare = proc::spare_time();
        const auto ours = computed(CLOCK_PROCESS_CPUTIME_ID);
        const Seconds since = now - std::exchange(last_look_, now);
        const auto before = std::exchange(spare_, spare);
        const auto ours_before = std::exchange(ours_, ours);
        const auto unwanted = 1 - 2 * part_waited();
        if (!spare)
            of_late_ = 0;
        else if (before)
            of_late_ = (*spare - *before + std::max(0.0, unwanted) * (ours - ours_before)) / since;
        last_of_any_ = of_late_;
    }
    double of_late() const { return of_late_; }

  private:
    // Of the time since the last look that the thread could have computed.
    double part_waited() {
        const auto now = proc::scheduled_time(getpid(), gettid()).value_or(proc::ScheduledTime{});
        const auto before = std::exchange(scheduled_, now);
        const auto waited = now.waited - before.waited, all = now.ran - before.ran + waited;
        return all > 0 ? static_cast<double>(waited) / static_cast<double>(all) : 0;
    }

    std::optional<Seconds> spare_ = proc::spare_time();
    Seconds ours_ = computed(CLOCK_PROCESS_CPUTIME_ID);
    proc::ScheduledTime scheduled_ =
        proc::scheduled_time(getpid(), gettid()).value_or(proc::ScheduledTime{});
    Clock::time_point last_look_ = Clock::now();
    Clock::time_point next_look_ = last_look_ + tuning::first_look_at_processors;
    // The first program is taken to be alone; of others something is known.
    static inline std::atomic<double> last_of_any_{
        static_cast<double>(proc::usable_cores().processors) - 1};
    double of_late_ = last_of_any_;
};

}  // namespace shadowprof::machine
