// Where the sampler has the time from: the clock, or a test's own.
#pragma once

#include <functional>

#include "base/clock.h"

namespace shadowprof::sampling {

using TimeSource = std::function<Clock::time_point()>;

inline Clock::time_point after(Clock::time_point then, Seconds wait) {
    return then + std::chrono::duration_cast<Clock::duration>(wait);
}

}  // namespace shadowprof::sampling
