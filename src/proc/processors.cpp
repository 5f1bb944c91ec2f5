#include "proc/processors.h"

#include <cpuid.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "proc/control_groups.h"
#include "proc/proc_text.h"

namespace shadowprof::proc {

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

// A list of the threads of a core, "0,4", is the core's name.
Cores usable_cores(const std::string& of_system) {
    cpu_set_t ours;
    if (sched_getaffinity(0, sizeof ours, &ours) != 0) return {};
    Cores usable;
    std::set<std::string> cores;
    for (std::size_t processor = 0; processor < CPU_SETSIZE; ++processor) {
        if (!CPU_ISSET(processor, &ours)) continue;
        ++usable.processors;
        const auto name = "cpu" + std::to_string(processor);
        const auto siblings =
            read_proc_file(of_system + "/" + name + "/topology/thread_siblings_list");
        cores.insert(siblings.empty() ? name : siblings);
    }
    usable.cores = cores.size();
    return usable;
}

bool are_virtual_processors() {
    constexpr unsigned hypervisor = 1u << 31;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & hypervisor) != 0;
}

// "cpu3 10132153 290696 3084719 46828483 16683 …": the time as user, of that as nice, in the
// kernel, idle, and idle while a disk works.
std::optional<Seconds> spare_time(const std::string& statistics) {
    cpu_set_t ours;
    if (sched_getaffinity(0, sizeof ours, &ours) != 0) return {};
    std::istringstream text{read_proc_file(statistics)};
    std::optional<double> ticks;
    for (std::string line; std::getline(text, line) && line.starts_with("cpu");) {
        std::istringstream words{line.substr(3)};
        std::size_t processor = 0;
        double user = 0, nice = 0, kernel = 0, idle = 0, disk = 0;
        if (line[3] == ' ' || !(words >> processor >> user >> nice >> kernel >> idle >> disk))
            continue;
        if (processor < CPU_SETSIZE && CPU_ISSET(processor, &ours))
            ticks = ticks.value_or(0) + nice + idle + disk;
    }
    if (!ticks) return {};
    return Seconds{*ticks / static_cast<double>(sysconf(_SC_CLK_TCK))};
}

}  // namespace shadowprof::proc
