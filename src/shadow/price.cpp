#include "shadow/price.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "shadow/computed.h"

namespace shadowprof::shadow {

namespace {

// The thread runs on until the interruption reaches it, and when it waits for a core, which may
// take long, it costs nothing to let it wait: only the time in which we are being woken counts.
constexpr Seconds longest_wake_up{100e-6};

// What neither includes: the thread's own wake-up, cold caches and TLB, less the time it ran before
// the interruption reached it.
constexpr Seconds unseen{10e-6};

}  // namespace

Price::Price(bool computes_beside)
    : computes_beside_(computes_beside),
      load_file_(open("/proc/loadavg", O_RDONLY | O_CLOEXEC)),
      cores_(static_cast<double>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)))),
      computed_before_(computed(CLOCK_PROCESS_CPUTIME_ID)) {}

Price::~Price() {
    if (load_file_ >= 0) close(load_file_);
}

// Now, while nothing of the last burst is being digested any more.
void Price::interrupting() {
    we_displace_others_ = computes_beside_ && every_core_has_work();
}

void Price::stopped(ptrace::Clock::time_point asked) {
    until_heard_ = std::min<Seconds>(ptrace::Clock::now() - asked, longest_wake_up);
}

Seconds Price::of_stop(Seconds held) {
    const auto now = computed(CLOCK_PROCESS_CPUTIME_ID);
    const auto beside = std::max(Seconds{0}, now - computed_before_ - held);
    computed_before_ = now;
    const auto stop = until_heard_ + held + unseen;
    return we_displace_others_ ? stop + beside / cores_ : stop;
}

// "0.20 0.18 0.12 3/80 11206": three threads run, one of them this one.
bool Price::every_core_has_work() const {
    char text[128];
    const auto size = pread(load_file_, text, sizeof text - 1, 0);
    if (size <= 0) return false;
    text[size] = '\0';
    const char* running = text;
    for (int field = 0; field < 3 && running; ++field) {
        running = std::strchr(running, ' ');
        if (running) ++running;
    }
    return running && std::strtod(running, nullptr) - 1 >= cores_;
}

}  // namespace shadowprof::shadow
