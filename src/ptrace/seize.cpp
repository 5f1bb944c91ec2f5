#include "ptrace/seize.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proc/proc_text.h"
#include "ptrace/system.h"
#include "ptrace/tracing_thread.h"

namespace shadowprof::ptrace {
namespace {

std::string name_of(const std::string& status) {
    const auto name = proc::status_field(status, "Name");
    return name.empty() ? "?" : name;
}

std::string why_not_permitted(pid_t pid, const std::string& status) {
    const auto yama = proc::read_proc_file("/proc/sys/kernel/yama/ptrace_scope");
    const char scope = yama.empty() ? '0' : yama.front();
    if (scope == '3')
        return "the system forbids ptrace altogether (kernel.yama.ptrace_scope is 3, and only a "
               "reboot can lower it)";
    if (may_trace_anything())
        return "the kernel forbids it (a security module, a process of another container, or a "
               "seccomp filter of this container); in a container add the capability SYS_PTRACE";
    const auto owner = proc::status_field(status, "Uid");
    if (!owner.empty() && std::stoul(owner) != geteuid())
        return "it belongs to another user; run shadowprof as root or with CAP_SYS_PTRACE";
    if (scope == '2')
        return "kernel.yama.ptrace_scope is 2; run shadowprof as root or with CAP_SYS_PTRACE";
    if (scope == '1')
        return "kernel.yama.ptrace_scope is 1; run shadowprof as root, or allow it with `sysctl "
               "kernel.yama.ptrace_scope=0`, or start the program with `shadowprof run`";
    return fmt::format(
        "process {} has privileges that this one lacks; run shadowprof as root or "
        "with CAP_SYS_PTRACE",
        pid);
}

}  // namespace

bool seize(pid_t tid) {
    return request(PTRACE_SEIZE, tid, seize_options) == 0;
}

std::string why_not_seized(pid_t pid, int error) {
    const auto status = proc::read_proc_file(fmt::format("/proc/{}/status", pid));
    if (status.empty()) return fmt::format("no process {}", pid);
    const auto cannot = fmt::format("cannot trace process {} ({}): ", pid, name_of(status));
    if (proc::status_field(status, "State").starts_with("Z"))
        return cannot + "it has ended and only waits for its parent to notice (a zombie)";
    const auto tracer = proc::status_field(status, "TracerPid");
    if (!tracer.empty() && tracer != "0") {
        const auto other = name_of(proc::read_proc_file(fmt::format("/proc/{}/status", tracer)));
        return cannot +
               fmt::format("process {} ({}) already traces it; end that first", tracer, other);
    }
    if (error == ESRCH) return fmt::format("no process {}", pid);
    if (error == EPERM) return cannot + why_not_permitted(pid, status);
    return cannot + std::strerror(error);
}

}  // namespace shadowprof::ptrace
