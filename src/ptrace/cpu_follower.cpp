#include "ptrace/cpu_follower.h"

#include "proc/process_info.h"
#include "proc/processors.h"
#include "ptrace/tuning.h"

namespace shadowprof::ptrace {

CpuFollower::CpuFollower(pid_t pid, pid_t tid) : pid_(pid), tid_(tid) {
    CPU_ZERO(&before_);
    sched_getaffinity(0, sizeof before_, &before_);
    look();
}

CpuFollower::~CpuFollower() {
    sched_setaffinity(0, sizeof before_, &before_);
}

void CpuFollower::look() {
    stops_until_look_ = tuning::stops_between_looks;
    const auto stat = proc::thread_stat(pid_, tid_);
    if (!stat || stat->processor == here_) return;
    // We may have been confined to fewer CPUs than the program.
    if (!CPU_ISSET(static_cast<std::size_t>(stat->processor), &before_)) return;
    if (proc::confine_to(stat->processor)) here_ = stat->processor;
}

}  // namespace shadowprof::ptrace
