#include "ptrace/tracing_thread.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "proc/proc_text.h"
#include "ptrace/inherited_signals.h"
#include "ptrace/tuning.h"
#include "ptrace/wait_timer.h"

namespace shadowprof::ptrace {
namespace {

// Of sched_setattr(2): <linux/sched/types.h> and <sched.h> cannot be included together.
struct SchedulingAttributes {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
};

}  // namespace

void prepare_tracing_thread() {
    InheritedSignals::remember();
    WaitTimer::install();
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, WaitTimer::signal());
    pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
}

// Fair scheduling lets a thread that wakes up displace another one if it asks for a shorter slice.
// The slice is a request, not a limit.
void wake_up_promptly() {
    SchedulingAttributes attributes{};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
    attributes.runtime = tuning::shortest_slice_ns;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
}

bool may_trace_anything() {
    constexpr unsigned cap_sys_ptrace = 19;
    const auto effective = proc::status_field(proc::read_proc_file("/proc/self/status"), "CapEff");
    return !effective.empty() && (std::stoull(effective, nullptr, 16) >> cap_sys_ptrace & 1) != 0;
}

}  // namespace shadowprof::ptrace
