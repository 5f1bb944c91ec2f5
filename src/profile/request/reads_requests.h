// What a profiler is besides, if it reads which requests threads work for.
#pragma once

#include "profile/common/clock_look.h"
#include "trace/request.h"
#include "trace/trace.h"

namespace shadowprof::profile {

class ReadsRequests {
  public:
    virtual ~ReadsRequests() = default;
    // Of a thread of the sample: when that begins, before its Trace does.
    virtual void see_request(trace::SampleId sample, const trace::RequestSight& sight) = 0;
    virtual void look_for_request(const ClockLook&, const trace::RequestSight&) {}
};

}  // namespace shadowprof::profile
