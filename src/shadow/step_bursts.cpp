#include "shadow/step_bursts.h"

#include "ptrace/call_stack.h"
#include "shadow/choose_thread.h"

namespace shadowprof::shadow {

namespace {

// A thread that sleeps in a system call during its burst is let go after this.
constexpr Seconds patience{0.1};

}  // namespace

StepBursts::StepBursts(Workplace place)
    : place_(std::move(place)),
      budget_(place_.options.overhead, place_.options.period, place_.random.fork()) {
    schedule(budget_.first_wait());
}

void StepBursts::tick() {
    if (stepper_) {
        if (stepper_->in_system_call()) {
            stepper_->give_up("asleep in a system call");
            end_burst(false);
        }
        schedule(patience);
        return;
    }
    const auto most = place_.options.most_samples;
    if (most && samples_ >= *most) {
        next_tick_ = ptrace::Clock::time_point::max();
        return;
    }
    auto* thread = choose_running_thread(place_.tracer, place_.random);
    if (thread && thread->interrupt()) interrupting_ = thread;
    schedule(budget_.next_wait());
}

bool StepBursts::take(const ptrace::Event& event) {
    if (!event.thread) return false;
    if (stepper_ && &stepper_->thread() == event.thread) {
        const bool was_in_system_call = stepper_->in_system_call();
        const bool gone = event.kind == ptrace::EventKind::thread_gone;
        const auto state = stepper_->on_event(event);
        const auto now = ptrace::Clock::now();
        if (was_in_system_call) stopped_since_ = now;
        if (!was_in_system_call && stepper_->in_system_call()) burst_cost_ += now - stopped_since_;
        if (state == emu::Stepper::State::finished) end_burst(!gone);
        return true;
    }
    if (interrupting_ == event.thread) {
        interrupting_ = nullptr;
        if (event.kind != ptrace::EventKind::interrupted) return false;
        begin_burst(*event.thread);
        return true;
    }
    return false;
}

void StepBursts::begin_burst(ptrace::Thread& thread) {
    stopped_since_ = ptrace::Clock::now();
    burst_cost_ = Seconds{0};
    place_.tracer.repair_interrupted_call(thread);
    const auto registers = thread.registers();
    if (!registers || !registers->is_64bit()) {
        thread.resume();
        return;
    }
    place_.code.mappings_may_have_changed();
    trace::TraceStart start;
    start.trace = trace::TraceId{samples_};
    start.sample = trace::SampleId{samples_++};
    place_.digester.begin(start, ptrace::snapshot_stack(place_.tracer.pid(), *registers),
                          place_.code.maps());
    stepper_ = std::make_unique<emu::Stepper>(place_.tracer, thread, place_.code, place_.digester,
                                              start.trace, place_.options.sample_size);
    place_.tracer.follow(thread);
    schedule(patience);
    if (stepper_->begin() == emu::Stepper::State::finished) end_burst(true);
}

void StepBursts::end_burst(bool thread_is_there) {
    if (thread_is_there) stepper_->thread().resume(stepper_->undelivered_signal());
    if (!stepper_->in_system_call()) burst_cost_ += ptrace::Clock::now() - stopped_since_;
    stepper_.reset();
    place_.tracer.stop_following();
    place_.digester.end_sample(trace::SampleId{samples_ - 1});
    ++cost_.stops;
    cost_.stop_time += burst_cost_;
    budget_.spent(burst_cost_);
    schedule(budget_.next_wait());
}

void StepBursts::wind_up(const std::string& reason) {
    if (!stepper_) return;
    stepper_->request_end(reason);
    const auto deadline = ptrace::Clock::now() + std::chrono::seconds{1};
    while (stepper_ && place_.tracer.alive() && !stepper_->in_system_call() &&
           ptrace::Clock::now() < deadline) {
        const auto event = place_.tracer.wait(deadline);
        if (event && !take(*event)) place_.tracer.pass_on(*event);
    }
    if (stepper_) {
        stepper_->give_up(reason);
        end_burst(false);
    }
}

void StepBursts::schedule(Seconds wait) {
    next_tick_ = ptrace::Clock::now() + std::chrono::duration_cast<ptrace::Clock::duration>(wait);
}

}  // namespace shadowprof::shadow
