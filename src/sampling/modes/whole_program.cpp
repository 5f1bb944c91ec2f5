#include "sampling/modes/whole_program.h"

#include "base/clock.h"
#include "sampling/kinds/kind_parts.h"

namespace shadowprof::sampling {

bool WholeProgram::take(const ptrace::Event& event) {
    if (!event.thread) return false;
    const auto known = steppers_.find(event.thread->tid());
    if (known == steppers_.end()) {
        const bool begins = event.kind == ptrace::EventKind::exec ||
                            event.kind == ptrace::EventKind::thread_started;
        if (begins) follow(event);
        return begins;
    }
    const bool gone = event.kind == ptrace::EventKind::thread_gone;
    if (known->second->on_event(event) == emu::Stepper::State::finished) retire(known, !gone);
    return true;
}

void WholeProgram::follow(const ptrace::Event& event) {
    trace::TraceStart start;
    start.trace = trace::TraceId{traces_++};
    start.from_thread_start = true;
    start.signals.emplace();
    tell_thread(place_, start, event.thread->tid());
    place_.digester.begin(start);
    auto stepper = std::make_unique<emu::Stepper>(place_.tracer, *event.thread, place_.code,
                                                  place_.digester, start.trace, 0);
    if (place_.options.tells_states)
        stepper->tell_state([pid = place_.tracer.pid(), tid = event.thread->tid()] {
            return thread_state(pid, tid);
        });
    const auto at = steppers_.emplace(event.thread->tid(), std::move(stepper)).first;
    place_.tracer.follow(*event.thread);
    const auto state = event.kind == ptrace::EventKind::exec ? at->second->begin_after_exec()
                                                             : at->second->begin();
    ++cost_.stops;
    if (state == emu::Stepper::State::finished) retire(at, true);
}

void WholeProgram::retire(Steppers::iterator stepper, bool thread_is_there) {
    if (thread_is_there) {
        saw_everything_ = false;
        stepper->second->thread().resume(stepper->second->undelivered_signal());
    }
    steppers_.erase(stepper);
}

void WholeProgram::wind_up(const std::string& reason) {
    // A thread between two steps stops within microseconds and ends its Trace then; one inside a
    // system call may stay there.
    const auto deadline = Clock::now() + std::chrono::seconds{1};
    for (auto& [tid, stepper] : steppers_) stepper->request_end(reason);
    const auto still_stepping = [&] {
        for (auto& [tid, stepper] : steppers_)
            if (!stepper->in_system_call()) return true;
        return false;
    };
    while (place_.tracer.alive() && still_stepping() && Clock::now() < deadline) {
        const auto event = place_.tracer.wait(deadline);
        if (event && !take(*event)) place_.tracer.pass_on(*event);
    }
    for (auto& [tid, stepper] : steppers_) {
        if (place_.tracer.alive()) {
            saw_everything_ = false;
            stepper->give_up(reason);
        } else {
            stepper->on_event({.kind = ptrace::EventKind::process_gone});
        }
    }
    steppers_.clear();
    place_.digester.end_sample(trace::SampleId{0});
    cost_.stop_time = Clock::now() - began_;
}

}  // namespace shadowprof::sampling
