// Gives numbers to the Traces and samples of a run. For any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "trace/trace.h"

namespace shadowprof::trace {

struct IdAllocator {
    std::atomic<std::uint32_t> traces{0}, samples{0};

    TraceId next_trace() { return TraceId{traces++}; }
    SampleId next_sample() { return SampleId{samples++}; }
};

}  // namespace shadowprof::trace
