#include "ptrace/woken_threads.h"

#include "proc/process_info.h"
#include "ptrace/tuning.h"

namespace shadowprof::ptrace {

bool WokenThreads::may_include(pid_t tid) {
    const auto stat = proc::thread_stat(process_, tid);
    if (!stat || stat->state != 'R') {
        awake_.erase(tid);
        return false;
    }
    const auto cpu_time = proc::thread_cpu_time(process_, tid).value_or(0);
    const auto times = proc::times_slept(process_, tid).value_or(0);
    const auto [entry, is_new] = awake_.try_emplace(tid, Seen{cpu_time, times});
    auto& seen = entry->second;
    if (is_new) return true;
    if (times == seen.times_slept) return cpu_time < seen.cpu_time + tuning::surely_reported_ns;
    seen = {cpu_time, times, seen.sleeps + 1};
    return seen.sleeps < tuning::enough_sleeps;
}

}  // namespace shadowprof::ptrace
