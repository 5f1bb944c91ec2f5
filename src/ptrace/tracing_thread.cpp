#include "ptrace/tracing_thread.h"

#include <signal.h>

#include <cstdint>
#include <string>

#include "ptrace/inherited_signals.h"
#include "ptrace/news_alarm.h"
#include "ptrace/system.h"

namespace shadowprof::ptrace {

void prepare_tracing_thread() {
    InheritedSignals::remember();
    NewsAlarm::install();
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, NewsAlarm::signal());
    pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
}

bool may_trace_anything() {
    constexpr unsigned cap_sys_ptrace = 19;
    const auto effective = status_field(read_proc_file("/proc/self/status"), "CapEff");
    return !effective.empty() && (std::stoull(effective, nullptr, 16) >> cap_sys_ptrace & 1) != 0;
}

}  // namespace shadowprof::ptrace
