#include "proc/identity.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <vector>

#include "proc/open_files.h"
#include "proc/proc_text.h"

namespace shadowprof::proc {
namespace {

std::vector<unsigned> numbers(const std::string& text) {
    std::vector<unsigned> result;
    const char* at = text.c_str();
    char* end = nullptr;
    while (true) {
        const auto value = std::strtoul(at, &end, 10);
        if (end == at) return result;
        result.push_back(static_cast<unsigned>(value));
        at = end;
    }
}

}  // namespace

std::optional<Identity> identity_of(pid_t pid, pid_t tid) {
    return identity_in(read_proc_file(fmt::format("/proc/{}/task/{}/status", pid, tid)));
}

std::optional<Identity> identity_in(std::string_view status) {
    // Ids from our namespace down to the thread's own.
    const auto group_ids = numbers(status_field(status, "NStgid"));
    const auto thread_ids = numbers(status_field(status, "NSpid"));
    const auto process_groups = numbers(status_field(status, "NSpgid"));
    const auto sessions = numbers(status_field(status, "NSsid"));
    const auto users = numbers(status_field(status, "Uid"));
    const auto groups = numbers(status_field(status, "Gid"));
    if (group_ids.empty() || thread_ids.empty() || process_groups.empty() || sessions.empty() ||
        users.size() < 3 || groups.size() < 3)
        return {};
    Identity identity;
    identity.pid = static_cast<pid_t>(group_ids.back());
    identity.tid = static_cast<pid_t>(thread_ids.back());
    if (thread_ids.size() == 1) identity.parent = std::atoi(status_field(status, "PPid").c_str());
    identity.group = static_cast<pid_t>(process_groups.back());
    identity.session = static_cast<pid_t>(sessions.back());
    identity.uid = users[0];
    identity.effective_uid = users[1];
    identity.saved_uid = users[2];
    identity.gid = groups[0];
    identity.effective_gid = groups[1];
    identity.saved_gid = groups[2];
    return identity;
}

bool shares_time_namespace(pid_t pid) {
    struct stat ours {};
    struct stat theirs {};
    if (stat("/proc/self/ns/time", &ours) != 0) return true;  // a kernel without them
    return stat(fmt::format("/proc/{}/ns/time", pid).c_str(), &theirs) == 0 &&
           is_same_file(ours, theirs);
}

}  // namespace shadowprof::proc
