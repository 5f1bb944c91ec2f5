#include "ptrace/processors.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>

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

// A group's limit holds for all groups within it.
template <typename Limit>
double tightest(const std::string& root, std::string path, Limit limit_of) {
    double tightest = limit_of(root);
    while (path.size() > 1) {
        tightest = std::min(tightest, limit_of(root + path));
        path.erase(path.rfind('/'));
    }
    return tightest;
}

double limit_by_groups(pid_t pid) {
    const std::string root = "/sys/fs/cgroup";
    std::istringstream lines{read_proc_file(fmt::format("/proc/{}/cgroup", pid))};
    double limit = no_limit;
    // "HIERARCHY:CONTROLLERS:PATH"; version 2 names no controllers.
    for (std::string line; std::getline(lines, line);) {
        const auto first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const auto controllers = line.substr(first + 1, second - first - 1);
        const auto path = line.substr(second + 1);
        if (controllers.empty())
            limit = std::min(limit, tightest(root, path, limit_of_group));
        else if (("," + controllers + ",").find(",cpu,") != std::string::npos)
            limit = std::min(limit, tightest(root + "/cpu", path, limit_of_old_group));
    }
    return limit;
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
    return std::min(usable, limit_by_groups(pid));
}

}  // namespace shadowprof::ptrace
