#include "stepping.h"

#include "base/clock.h"
#include "emu/stepper/stepper.h"

namespace shadowprof::equivalence {

bool Stepping::step(ptrace::Thread& thread, std::uint64_t instructions, RecordedTrace& trace) {
    emu::Stepper stepper(tracer_, thread, code_, trace, trace::TraceId{0}, instructions);
    bool saw_signal = false;
    auto state = stepper.begin();
    while (state == emu::Stepper::State::running) {
        const auto event = tracer_.wait(Clock::time_point::max());
        if (!event) continue;
        if (event->thread != &thread && event->kind != ptrace::EventKind::process_gone) {
            tracer_.pass_on(*event);
            continue;
        }
        if (event->kind == ptrace::EventKind::signal ||
            event->kind == ptrace::EventKind::group_stop) {
            saw_signal = true;
            stepper.request_end("a signal arrived");
        }
        state = stepper.on_event(*event);
    }
    undelivered_signal_ = stepper.undelivered_signal();
    if (saw_signal) trace.end_reason = "a signal arrived";
    return !saw_signal &&
           (trace.end_reason == "sample size" || trace.end_reason == "no decodable instruction");
}

}  // namespace shadowprof::equivalence
