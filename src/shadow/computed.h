// Processor time, by one of the clocks that count it.
#pragma once

#include <ctime>

#include "shadow/options.h"

namespace shadowprof::shadow {

inline Seconds computed(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return Seconds{static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec)};
}

}  // namespace shadowprof::shadow
