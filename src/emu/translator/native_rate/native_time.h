// How long the original took for what a replica has executed.
//
// Samples begin at random times, so code is met as often as the program spends time in it, and not
// as often as it executes instructions of it. If samples had equal numbers of instructions, slow
// code would count too much: a phase that runs at a fifth of another's rate, five times as much. If
// each sample covers the same *time* of the original, the instructions in it are in proportion to
// what the program executes, and all samples together are as they should be.
//
// A replica takes longer than the original, by what it does besides. That can be counted and priced
// roughly (tuning.h), but it does not tell how much slower the translated code itself is: for 17
// programs on Zen 4, what was estimated to be a millisecond was between 0.7 and 1.75, and four
// kinds of lua code alone spanned that range. So before a sample begins the replica runs natively
// for a moment (native_stretch.h). How long an instruction took there holds for the sample's
// beginning; what follows is estimated in proportion. The same programs then had 1.1 to 1.3,
// and 1.6 where memory is waited for. It does no harm if all samples of a program are too short; it
// does if those of some phases are.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "emu/translator/threads/segment_work.h"
#include "emu/tuning.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

// What is known before a replica begins, in nanoseconds.
struct Experience {
    double of_fault = 2'500;  // of a replica's time, on this host
    // Of the program's time, as earlier replicas measured it, for where this one's measurement is
    // in doubt; and the most that is believed.
    std::optional<double> of_instruction;
    double most_of_instruction = std::numeric_limits<double>::infinity();
};

// Of nanoseconds in the cache, those that the program takes for the same.
inline double without_instrumentation(double nanoseconds, const Work& work, double besides = 0) {
    besides += tuning::nanoseconds_of_block * static_cast<double>(work.blocks) +
               tuning::nanoseconds_of_indirect * static_cast<double>(work.indirect);
    return std::max(nanoseconds - besides, tuning::smallest_part_of_original * nanoseconds);
}

class NativeTime {
  public:
    // Of all of it, or of one of its threads.
    NativeTime(pid_t replica, double of_fault, pid_t thread = 0)
        : replica_(replica),
          thread_(thread),
          of_fault_(of_fault),
          computed_(cpu_time().value_or(0)),
          faults_(minor_faults().value_or(0)) {}

    // Whether the time since the last look went into the work that is to be estimated.
    void look(bool is_of_work) {
        const auto now = cpu_time().value_or(last_look_);
        if (!is_of_work) computed_ += now - last_look_;
        last_look_ = now;
    }

    // How long an instruction was measured to take, where this begins.
    void set_rate(double nanoseconds) { of_instruction_ = nanoseconds; }

    // Nanoseconds of the original's time since this object was made.
    double estimate(const Work& work, std::uint64_t stops) {
        const auto by_count = from_replica(work, stops);
        if (!of_instruction_) return by_count;
        const auto by_rate = *of_instruction_ * static_cast<double>(work.instructions);
        if (by_count > 0 && by_rate < tuning::rate_holds_for) correction_ = by_rate / by_count;
        return correction_ * by_count;
    }

  private:
    double from_replica(const Work& work, std::uint64_t stops) const {
        const auto computed = cpu_time().value_or(computed_) - computed_;
        const auto faults = minor_faults().value_or(faults_) - faults_;
        return without_instrumentation(static_cast<double>(computed), work,
                                       tuning::nanoseconds_of_stop * static_cast<double>(stops) +
                                           of_fault_ * static_cast<double>(faults));
    }

    std::optional<std::uint64_t> cpu_time() const {
        return thread_ == 0 ? proc::process_cpu_time(replica_)
                            : proc::thread_cpu_time(replica_, thread_);
    }
    std::optional<std::uint64_t> minor_faults() const {
        if (thread_ == 0) return proc::minor_faults(replica_);
        const auto counts = proc::usage_counts(replica_, thread_);
        if (!counts) return {};
        return counts->minor_faults;
    }

    pid_t replica_, thread_;
    double of_fault_;
    std::uint64_t computed_;  // before
    std::uint64_t faults_;
    std::uint64_t last_look_ = computed_;
    std::optional<double> of_instruction_;
    double correction_ = 1;
};

}  // namespace shadowprof::emu::translator
