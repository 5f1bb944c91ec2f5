// What a stop costs a program that tracing brings with it, and of which no sample comes: a signal's
// delivery, the start of a thread. A program may have tens of thousands of them a second.
#pragma once

#include "shadow/options.h"

namespace shadowprof::shadow {

// Measured with a process of our own, at the first question, which takes some milliseconds.
Seconds price_of_passing_stop();

}  // namespace shadowprof::shadow
