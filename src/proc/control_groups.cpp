#include "proc/control_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "proc/proc_text.h"

namespace shadowprof::proc {

namespace {

double tightest_on_way(const std::string& root, std::string path, const LimitOfGroup& limit_of) {
    double tightest = limit_of(root);
    while (path.size() > 1) {
        tightest = std::min(tightest, limit_of(root + path));
        path.erase(path.rfind('/'));
    }
    return tightest;
}

}  // namespace

double tightest_limit(pid_t pid, std::string_view controller, const LimitOfGroup& in_version_2,
                      const LimitOfGroup& in_version_1) {
    const std::string root = "/sys/fs/cgroup";
    std::istringstream lines{read_proc_file(fmt::format("/proc/{}/cgroup", pid))};
    double limit = std::numeric_limits<double>::infinity();
    // "HIERARCHY:CONTROLLERS:PATH"; version 2 names no controllers.
    for (std::string line; std::getline(lines, line);) {
        const auto first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const auto controllers = line.substr(first + 1, second - first - 1);
        const auto path = line.substr(second + 1);
        if (controllers.empty())
            limit = std::min(limit, tightest_on_way(root, path, in_version_2));
        else if (("," + controllers + ",").find(fmt::format(",{},", controller)) !=
                 std::string::npos)
            limit = std::min(
                limit, tightest_on_way(fmt::format("{}/{}", root, controller), path, in_version_1));
    }
    return limit;
}

namespace {

// Infinite where there is a word instead.
double number_in(const std::string& path) {
    double number = 0;
    return std::istringstream{read_proc_file(path)} >> number
               ? number
               : std::numeric_limits<double>::infinity();
}

double number_behind(const std::string& key, const std::string& path) {
    std::istringstream lines{read_proc_file(path)};
    std::string word;
    for (double number = 0; lines >> word >> number;)
        if (word == key) return number;
    return 0;
}

}  // namespace

double memory_left_in_groups(pid_t pid) {
    const auto left = [](const char* most_in, const char* used_in, const char* files) {
        return [=](const std::string& folder) {
            const auto most = number_in(folder + most_in);
            if (most > 1e15) return std::numeric_limits<double>::infinity();
            const auto can_go = number_behind(files, folder + "/memory.stat");
            return most - number_in(folder + used_in) + can_go;
        };
    };
    return tightest_limit(
        pid, "memory", left("/memory.max", "/memory.current", "inactive_file"),
        left("/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"));
}

}  // namespace shadowprof::proc
