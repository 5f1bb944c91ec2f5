#include "machine/wakeful_processors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "proc/proc_text.h"

namespace shadowprof::machine {
namespace {

// Each that sleeps is woken for the request, and again for its end.
constexpr long most_processors = 8;
// Microseconds: what processors may need to be awake. By default it is as long as they like.
constexpr std::int32_t no_time = 0, any_time = 2'000'000'000;

// Without such a state they sleep all the same.
bool can_look_for_work() {
    return proc::read_proc_file("/sys/devices/system/cpu/cpu0/cpuidle/state0/name") == "POLL\n";
}

}  // namespace

WakefulProcessors::WakefulProcessors() {
    if (sysconf(_SC_NPROCESSORS_ONLN) > most_processors || !can_look_for_work()) return;
    request_ = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
}

WakefulProcessors::~WakefulProcessors() {
    if (request_ >= 0) close(request_);
}

void WakefulProcessors::begin() {
    if (request_ < 0 || is_made_) return;
    is_made_ = write(request_, &no_time, sizeof no_time) == sizeof no_time;
}

void WakefulProcessors::end() {
    if (!is_made_) return;
    is_made_ = false;
    if (write(request_, &any_time, sizeof any_time) < 0) errno = 0;  // it takes any
}

}  // namespace shadowprof::machine
