#include "report/model/host_facts.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <string_view>

namespace shadowprof::report {

namespace {

std::string cpu_model() {
    static constexpr std::string_view key = "model name";
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const auto value = line.find_first_not_of(" :\t", key.size());
        if (line.starts_with(key) && value != line.npos) return line.substr(value);
    }
    return "unknown";
}

}  // namespace

Host host_facts() {
    utsname system{};
    ::uname(&system);
    const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
    return {cpu_model(), cores > 0 ? static_cast<std::uint32_t>(cores) : 1, system.release};
}

}  // namespace shadowprof::report
