#include "shadow/price.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "shadow/birth_prices.h"

namespace shadowprof::shadow {

namespace {

// The thread runs on until the interruption reaches it, and when it waits for a core, which may
// take long, it costs nothing to let it wait: only the time in which we are being woken counts.
constexpr Seconds longest_wake_up{100e-6};

// What neither includes: the thread's own wake-up, cold caches and TLB, less the time it ran before
// the interruption reached it. Of threads that were held for a quarter of a millisecond, 350 times
// a second: 55 µs with 16 KB in use, 90 with 0.5 to 2 MB. Where faults are dear programs that
// compute lost 0.15 to 1.1 ms more by a stop than it was long; one that waits makes up for that
// while it would wait (docs/results/cost.md).
constexpr Seconds usually_unseen{50e-6}, unseen_where_faults_are_dear{500e-6};
constexpr double computes_all_the_time = 0.9;  // if so much of it

// A look shows an instant, in which one that is busy all day may just sleep.
constexpr double looks_remembered = 16;
// Of all cores' work: the target and one that it waits for.
constexpr double displaced_that_matter = 2;

}  // namespace

Price::Price(pid_t target, bool computes_beside)
    : computes_beside_(computes_beside),
      unseen_of_computing_(faults_are_dear() ? unseen_where_faults_are_dear : usually_unseen),
      target_computes_(target),
      load_file_(open("/proc/loadavg", O_RDONLY | O_CLOEXEC)),
      cores_(static_cast<double>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)))),
      computed_before_(computed(CLOCK_PROCESS_CPUTIME_ID)),
      computed_here_before_(computed(CLOCK_THREAD_CPUTIME_ID)) {}

Price::~Price() {
    if (load_file_ >= 0) close(load_file_);
}

// Now, while nothing of the last burst is being digested any more.
void Price::interrupting() {
    if (computes_beside_) busy_ += ((every_core_has_work() ? 1 : 0) - busy_) / looks_remembered;
}

void Price::stopped(ptrace::Clock::time_point asked, Seconds displaced) {
    displaced_ = displaced;
    woken_ = std::min<Seconds>(ptrace::Clock::now() - asked, longest_wake_up);
}

Price::OfStop Price::of_stop(Seconds held) {
    target_computes_.look(held);
    const auto since = [&](clockid_t clock, Seconds& before, Seconds counted_already) {
        const auto now = computed(clock);
        return std::max(Seconds{0}, now - std::exchange(before, now) - counted_already);
    };
    const auto in_all = since(CLOCK_PROCESS_CPUTIME_ID, computed_before_, held);
    const auto here = since(CLOCK_THREAD_CPUTIME_ID, computed_here_before_, held + displaced_);
    const auto unseen =
        target_computes_.of_late() >= computes_all_the_time ? unseen_of_computing_ : usually_unseen;
    const auto stop = displaced_ + woken_ + held + unseen;
    return {.likely = stop + here * busy_ / cores_,
            .most = stop + in_all * busy_ * std::min(1.0, displaced_that_matter / cores_)};
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
