#include "sampling/kinds/step_samples.h"

#include "base/clock.h"
#include "ptrace/call_stack.h"
#include "sampling/kinds/kind_parts.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

StepSamples::StepSamples(SamplerContext place, std::shared_ptr<Pacer> pacer)
    : SampleKind(std::move(pacer)), place_(std::move(place)) {}

void StepSamples::begin(ptrace::Thread& thread, const ptrace::Registers& registers) {
    stopped_since_ = Clock::now();
    held_ = Seconds{0};
    place_.code.time_has_passed();
    const auto start = next_sample(place_, pacer(), thread);
    sample_ = start.sample;
    place_.digester.begin(start, ptrace::snapshot_stack(place_.tracer.pid(), registers),
                          place_.code.maps());
    stepper_ = std::make_unique<emu::Stepper>(place_.tracer, thread, place_.code, place_.digester,
                                              start.trace, place_.options.sample_size);
    place_.tracer.follow(thread);
    if (stepper_->begin() == emu::Stepper::State::finished) close(true);
}

bool StepSamples::take(const ptrace::Event& event) {
    if (!stepper_ || &stepper_->thread() != event.thread) return false;
    const bool was_in_system_call = stepper_->in_system_call();
    const bool gone = event.kind == ptrace::EventKind::thread_gone;
    // An instruction that repeats itself is stopped each time, and may do so a million times.
    if (!was_in_system_call && held_ + (Clock::now() - stopped_since_) > tuning::longest_stepped)
        stepper_->request_end("one instruction takes too long");
    const auto state = stepper_->on_event(event);
    const auto now = Clock::now();
    if (was_in_system_call) stopped_since_ = now;
    if (!was_in_system_call && stepper_->in_system_call()) held_ += now - stopped_since_;
    if (state == emu::Stepper::State::finished) close(!gone);
    return true;
}

void StepSamples::is_overdue() {
    if (!stepper_->in_system_call()) return;
    stepper_->give_up("asleep in a system call");
    close(false);
}

void StepSamples::close(bool thread_is_there) {
    if (thread_is_there) stepper_->thread().resume(stepper_->undelivered_signal());
    if (!stepper_->in_system_call()) held_ += Clock::now() - stopped_since_;
    stepper_.reset();
    place_.tracer.stop_following();
    place_.digester.end_sample(sample_);
    pacer().finished(held_);
}

void StepSamples::end(const std::string& reason) {
    if (!stepper_) return;
    stepper_->request_end(reason);
    const auto deadline = Clock::now() + std::chrono::seconds{1};
    while (stepper_ && place_.tracer.alive() && !stepper_->in_system_call() &&
           Clock::now() < deadline) {
        const auto event = place_.tracer.wait(deadline);
        if (event && !take(*event)) place_.tracer.pass_on(*event);
    }
    if (stepper_) {
        stepper_->give_up(reason);
        close(false);
    }
}

}  // namespace shadowprof::sampling
