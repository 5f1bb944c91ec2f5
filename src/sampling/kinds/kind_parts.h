// What the kinds of samples of a traced program have in common.
#pragma once

#include <memory>

#include "sampling/sampling.h"
#include "sampling/schedule/overhead_model.h"
#include "sampling/schedule/pacer.h"

namespace shadowprof::sampling {

// `computes_beside`: see OverheadModel.
inline std::shared_ptr<Pacer> pacer_for(SamplerContext& place, bool computes_beside) {
    return std::make_shared<Pacer>(
        place.options, place.precision, place.random.fork(),
        std::make_unique<OverheadModel>(place.tracer.pid(), place.host, computes_beside));
}

inline trace::TraceStart next_sample(SamplerContext& place, Pacer& pacer) {
    trace::TraceStart start;
    start.trace = place.numbers.next_trace();
    start.sample = place.numbers.next_sample();
    start.weight = pacer.next_weight();
    return start;
}

}  // namespace shadowprof::sampling
