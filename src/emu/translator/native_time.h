// How long the original took for what a replica has executed.
//
// Samples begin at random times, so code in which the program spends its time is met as often as it
// takes, and not as often as it executes instructions. Samples of equal numbers of instructions
// would be of slow code too often: a phase that runs at a fifth of another's rate would count five
// times as much. If each sample covers the same *time* of the original, the instructions in it are
// in proportion to what the program executes, and all samples together are as they should be.
//
// A replica takes longer than the original, by what it does besides. How much that is follows, not
// exactly, from what can be counted: the prices below are those with which nine programs come out
// most alike: on Zen 4 what is estimated to be a millisecond was 0.85 of xz, 0.8 of bzip2 and gzip,
// 0.7 to 0.85 of three lua programs and sqlite3, and 0.6 of perl and python3, the machine's speed
// changing by as much meanwhile. That all samples of a program are shorter does no harm; that those
// of some phases are, does.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>

#include "emu/translator/segment_work.h"
#include "ptrace/process_info.h"

namespace shadowprof::emu::translator {

class NativeTime {
  public:
    explicit NativeTime(pid_t replica)
        : replica_(replica),
          computed_(ptrace::process_cpu_time(replica).value_or(0)),
          faults_(ptrace::minor_faults(replica).value_or(0)) {}

    // What has been computed since the last look was of the work that is to be estimated; or not.
    void look(bool is_of_work) {
        const auto now = ptrace::process_cpu_time(replica_).value_or(last_look_);
        if (!is_of_work) computed_ += now - last_look_;
        last_look_ = now;
    }

    // Nanoseconds of the original's, since this was made.
    double estimate(const Work& work, std::uint64_t stops) const {
        const auto computed = ptrace::process_cpu_time(replica_).value_or(computed_) - computed_;
        const auto faults = ptrace::minor_faults(replica_).value_or(faults_) - faults_;
        const auto besides = of_block * static_cast<double>(work.blocks) +
                             of_indirect * static_cast<double>(work.indirect) +
                             of_stop * static_cast<double>(stops) +
                             of_fault * static_cast<double>(faults);
        // Where much else goes on the prices are too rough.
        return std::max(static_cast<double>(computed) - besides,
                        smallest_part * static_cast<double>(computed));
    }

  private:
    // Nanoseconds.
    static constexpr double of_block = 0.2, of_indirect = 0.2, of_stop = 3000, of_fault = 1000;
    static constexpr double smallest_part = 0.3;

    pid_t replica_;
    std::uint64_t computed_;  // before
    std::uint64_t faults_;
    std::uint64_t last_look_ = computed_;
};

}  // namespace shadowprof::emu::translator
