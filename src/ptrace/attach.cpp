// Taking hold of a running process: whether that is possible at all, and its threads.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "proc/proc_text.h"
#include "proc/process_info.h"
#include "ptrace/seize.h"
#include "ptrace/thread_seizer.h"
#include "ptrace/traced_threads.h"
#include "ptrace/tracer.h"
#include "ptrace/tracing_thread.h"

namespace shadowprof::ptrace {
namespace {

bool is_kernel_thread(pid_t pid) {
    constexpr unsigned long pf_kthread = 0x00200000;
    const auto text = proc::read_proc_file(fmt::format("/proc/{}/stat", pid));
    const auto name_end = text.rfind(')');
    unsigned long flags = 0;
    return name_end != std::string::npos &&
           std::sscanf(text.c_str() + name_end + 1, " %*c %*d %*d %*d %*d %*d %lu", &flags) == 1 &&
           (flags & pf_kthread) != 0;
}

void refuse_what_cannot_be_profiled(pid_t pid) {
    const auto status = pid > 0 ? proc::read_proc_file(fmt::format("/proc/{}/status", pid)) : "";
    if (status.empty()) throw UserError(fmt::format("no process {}", pid));
    if (pid == getpid()) throw UserError("shadowprof cannot profile itself");
    const auto process = proc::status_field(status, "Tgid");
    if (process != std::to_string(pid))
        throw UserError(fmt::format("{} is a thread of process {} ({}); attach to that", pid,
                                    process, proc::status_field(status, "Name")));
    if (is_kernel_thread(pid))
        throw UserError(fmt::format("{} ({}) is a kernel thread, not a program", pid,
                                    proc::status_field(status, "Name")));
    if (proc::is_32bit(pid))
        throw UserError(
            fmt::format("process {} ({}) is a 32-bit program, and shadowprof profiles "
                        "64-bit ones",
                        pid, proc::status_field(status, "Name")));
}

}  // namespace

std::unique_ptr<Tracer> Tracer::attach(pid_t pid) {
    refuse_what_cannot_be_profiled(pid);
    prepare_tracing_thread();
    std::unique_ptr<Tracer> tracer{new Tracer(pid, false)};
    tracer->seizer_ =
        std::make_unique<ThreadSeizer>(*tracer->threads_, *tracer->reader_, *tracer->timer_);
    tracer->seizer_->seize_all();
    if (tracer->threads_->empty()) throw UserError(why_not_seized(pid, ESRCH));
    return tracer;
}

std::unique_ptr<Tracer> Tracer::look_at(pid_t pid) {
    refuse_what_cannot_be_profiled(pid);
    prepare_tracing_thread();
    std::unique_ptr<Tracer> tracer{new Tracer(pid, false)};
    tracer->leave_alone({.kind = EventKind::exec, .thread = &tracer->threads_->add(pid)});
    return tracer;
}

}  // namespace shadowprof::ptrace
