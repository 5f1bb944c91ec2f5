#include "ptrace/tracing_thread.h"

#include <signal.h>

#include <cstdint>
#include <string>

#include "ptrace/inherited_signals.h"
#include "ptrace/system.h"

namespace shadowprof::ptrace {

void prepare_tracing_thread() {
    InheritedSignals::remember();
    // While it is ignored, nothing is sent at all.
    struct sigaction action {};
    if (sigaction(SIGCHLD, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
        action.sa_handler = SIG_DFL;
        sigaction(SIGCHLD, &action, nullptr);
    }
    sigset_t child_changed;
    sigemptyset(&child_changed);
    sigaddset(&child_changed, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &child_changed, nullptr);
}

bool may_trace_anything() {
    constexpr unsigned cap_sys_ptrace = 19;
    const auto effective = status_field(read_proc_file("/proc/self/status"), "CapEff");
    return !effective.empty() && (std::stoull(effective, nullptr, 16) >> cap_sys_ptrace & 1) != 0;
}

}  // namespace shadowprof::ptrace
