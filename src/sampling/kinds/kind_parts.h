// What the kinds of samples of a traced program have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "emu/translator/threads/thread_recording.h"
#include "proc/process_info.h"
#include "sampling/digester.h"
#include "sampling/requests/program_requests.h"
#include "sampling/sampling.h"
#include "sampling/schedule/overhead_model.h"
#include "sampling/schedule/pacer.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

// `computes_beside`: see OverheadModel.
inline std::shared_ptr<Pacer> pacer_for(SamplerContext& place, bool computes_beside) {
    return std::make_shared<Pacer>(
        place.options, place.precision, place.random.fork(),
        std::make_unique<OverheadModel>(place.tracer.pid(), place.host, computes_beside));
}

inline trace::ThreadState thread_state(pid_t pid, pid_t tid) {
    trace::ThreadState state{.tid = tid};
    if (const auto stat = proc::thread_stat(pid, tid)) {
        state.processor = stat->processor;
        state.scheduling = stat->scheduling;
    }
    return state;
}

// What is told of the thread of a Trace, as far as it was asked for.
inline void tell_thread(const SamplerContext& place, trace::TraceStart& start, pid_t tid) {
    const auto pid = place.tracer.pid();
    if (place.options.names_threads) start.thread = proc::thread_name(pid, tid);
    start.state = place.options.tells_states ? thread_state(pid, tid) : trace::ThreadState{tid};
}

// It begins a sample, or joins one: programs that are followed as a whole have no moment for it.
inline void tell_request(const SamplerContext& place, trace::SampleId sample, pid_t tid) {
    place.requests.look_at(place.code.current_maps());
    place.digester.see_request(sample, place.requests.of_stopped(tid));
}

inline trace::TraceStart next_sample(SamplerContext& place, Pacer& pacer,
                                     const ptrace::Thread& thread) {
    trace::TraceStart start;
    start.trace = place.numbers.next_trace();
    start.sample = place.numbers.next_sample();
    start.stands_for = std::chrono::duration<double, std::nano>(pacer.begins()).count();
    tell_thread(place, start, thread.tid());
    tell_request(place, start.sample, thread.tid());
    return start;
}

// What the threads of a code cache record, as was asked for.
inline emu::translator::ValueSampling values_of(const SamplerContext& place) {
    return {.captures = place.code.plan().has_slots(),
            .fraction = place.options.exhaustive ? 1.0 : place.options.value_fraction};
}
inline emu::translator::LoadSampling loads_of(const SamplerContext& place,
                                              std::uint64_t warm_up = 0) {
    return {.wanted = place.code.plan().has(trace::Capture::latency),
            .timed = place.options.clock_is_usable,
            .warm_up = warm_up};
}

}  // namespace shadowprof::sampling
