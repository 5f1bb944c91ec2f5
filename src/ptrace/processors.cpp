#include "ptrace/processors.h"

#include <sched.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>

#include "ptrace/control_groups.h"
#include "ptrace/system.h"

namespace shadowprof::ptrace {

namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

// Version 2: "max 100000" or "150000 100000".
double limit_of_group(const std::string& folder) {
    std::istringstream text{read_proc_file(folder + "/cpu.max")};
    double quota = 0, period = 0;
    return text >> quota >> period && period > 0 ? quota / period : no_limit;
}

// Version 1: a quota of -1 is none.
double limit_of_old_group(const std::string& folder) {
    std::istringstream quota_text{read_proc_file(folder + "/cpu.cfs_quota_us")};
    std::istringstream period_text{read_proc_file(folder + "/cpu.cfs_period_us")};
    double quota = 0, period = 0;
    return quota_text >> quota && period_text >> period && quota > 0 && period > 0 ? quota / period
                                                                                   : no_limit;
}

}  // namespace

bool confine_to(int processor, pid_t tid) {
    cpu_set_t there;
    CPU_ZERO(&there);
    CPU_SET(static_cast<std::size_t>(processor), &there);
    return sched_setaffinity(tid, sizeof there, &there) == 0;
}

double processors_for(pid_t pid) {
    cpu_set_t ours;
    const double usable = sched_getaffinity(0, sizeof ours, &ours) == 0 ? CPU_COUNT(&ours) : 1;
    return std::min(usable, tightest_limit(pid, "cpu", limit_of_group, limit_of_old_group));
}

}  // namespace shadowprof::ptrace
