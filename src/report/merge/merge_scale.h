// How times were measured, of several machines: what a merged profile says of clocks and caches.
#pragma once

#include "report/model/profile.h"

namespace shadowprof::report {

// The coarsest clock's and the largest caches' stand for all: readings were told apart by no less,
// whatever the order of merging. The levels that loads were said to hit stay each machine's own.
void merge(LatencyScale& into, const LatencyScale& other);

}  // namespace shadowprof::report
