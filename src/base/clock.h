// Time, as all rooms measure it.
#pragma once

#include <chrono>

namespace shadowprof {

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

}  // namespace shadowprof
