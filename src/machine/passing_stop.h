// What a stop costs a program that tracing brings with it, and of which no sample comes: a signal's
// delivery, say. It may have tens of thousands of them a second.
#pragma once

#include "base/clock.h"
#include "sampling/options.h"

namespace shadowprof::machine {

// So long after the one before. Where that is long the tracing thread's processor sleeps, and in
// some virtual machines to be woken takes several times as long as all the rest. Measured with a
// process of our own, at the first question, which takes some milliseconds.
Seconds price_of_passing_stop(Seconds since_last);

}  // namespace shadowprof::machine
