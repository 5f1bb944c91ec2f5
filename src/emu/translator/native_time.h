// How long the original took for what a replica has executed.
//
// Samples begin at random times, so code in which the program spends its time is met as often as it
// takes, and not as often as it executes instructions. Samples of equal numbers of instructions
// would be of slow code too often: a phase that runs at a fifth of another's rate would count five
// times as much. If each sample covers the same *time* of the original, the instructions in it are
// in proportion to what the program executes, and all samples together are as they should be.
//
// A replica takes longer than the original, by what it does besides: roughly, from what can be
// counted, at the prices below. How much its code is slower than the original's is not to be told
// from that: of 17 programs on Zen 4 what was estimated to be a millisecond was between 0.7 and
// 1.75, four kinds of lua code alone spanning that. So before a sample begins the replica runs
// natively for a moment (native_stretch.h), and how long an instruction took there holds for the
// sample's beginning; what follows is told in proportion. The same programs had 1.1 to 1.3, where
// memory is waited for 1.6. That all samples of a program are shorter does no harm; that those of
// some phases are, does.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "emu/translator/segment_work.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

// What is known before a replica begins, in nanoseconds.
struct Experience {
    double of_fault = 2'500;  // of a replica's time, on this host
    // Of the program's, in replicas before, where what this one measures is to be doubted; and what
    // is to be believed at most.
    std::optional<double> of_instruction;
    double most_of_instruction = std::numeric_limits<double>::infinity();
};

class NativeTime {
  public:
    NativeTime(pid_t replica, double of_fault)
        : replica_(replica),
          of_fault_(of_fault),
          computed_(proc::process_cpu_time(replica).value_or(0)),
          faults_(proc::minor_faults(replica).value_or(0)) {}

    // What has been computed since the last look was of the work that is to be estimated; or not.
    void look(bool is_of_work) {
        const auto now = proc::process_cpu_time(replica_).value_or(last_look_);
        if (!is_of_work) computed_ += now - last_look_;
        last_look_ = now;
    }

    // How long an instruction takes where this begins, as it was measured.
    void set_rate(double nanoseconds) { of_instruction_ = nanoseconds; }

    // Nanoseconds of the original's, since this was made.
    double estimate(const Work& work, std::uint64_t stops) {
        const auto told = from_replica(work, stops);
        if (!of_instruction_) return told;
        const auto by_rate = *of_instruction_ * static_cast<double>(work.instructions);
        if (told > 0 && by_rate < rate_holds_for) correction_ = by_rate / told;
        return correction_ * told;
    }

    // Nanoseconds of a replica's.
    static constexpr double of_stop = 10'000;

  private:
    double from_replica(const Work& work, std::uint64_t stops) const {
        const auto computed = proc::process_cpu_time(replica_).value_or(computed_) - computed_;
        const auto faults = proc::minor_faults(replica_).value_or(faults_) - faults_;
        const auto besides = of_block * static_cast<double>(work.blocks) +
                             of_indirect * static_cast<double>(work.indirect) +
                             of_stop * static_cast<double>(stops) +
                             of_fault_ * static_cast<double>(faults);
        // Where much else goes on the prices are too rough.
        return std::max(static_cast<double>(computed) - besides,
                        smallest_part * static_cast<double>(computed));
    }

    static constexpr double of_block = 0.2, of_indirect = 0.2;
    static constexpr double smallest_part = 0.3;

    // What is executed later may be other code.
    static constexpr double rate_holds_for = 2e6;

    pid_t replica_;
    double of_fault_;
    std::uint64_t computed_;  // before
    std::uint64_t faults_;
    std::uint64_t last_look_ = computed_;
    std::optional<double> of_instruction_;
    double correction_ = 1;
};

}  // namespace shadowprof::emu::translator
