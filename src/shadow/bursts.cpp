#include "shadow/bursts.h"

#include "shadow/choose_thread.h"

namespace shadowprof::shadow {

Bursts::Bursts(Workplace place)
    : place_(std::move(place)),
      budget_(place_.options.overhead, place_.options.period, place_.random.fork()) {
    schedule(budget_.first_wait());
}

void Bursts::tick() {
    if (in_progress()) {
        overdue();
        if (in_progress()) schedule(patience);
        return;
    }
    const auto most = place_.options.most_samples;
    if (most && samples_ >= *most) {
        next_tick_ = ptrace::Clock::time_point::max();
        return;
    }
    schedule(budget_.next_wait());
    prepare();
    auto* thread = choose_running_thread(place_.tracer, place_.random);
    if (thread && thread->interrupt()) interrupting_ = thread;
}

bool Bursts::take(const ptrace::Event& event) {
    if (!event.thread) return false;
    if (in_progress() && take_own(event)) return true;
    if (interrupting_ != event.thread) return false;
    interrupting_ = nullptr;
    if (event.kind != ptrace::EventKind::interrupted) return false;
    place_.tracer.repair_interrupted_call(*event.thread);
    const auto registers = event.thread->registers();
    if (registers && registers->is_64bit()) {
        schedule(patience);
        begin(*event.thread, *registers);
    } else {
        event.thread->resume();
    }
    return true;
}

trace::TraceStart Bursts::next_sample() {
    trace::TraceStart start;
    start.trace = trace::TraceId{samples_};
    start.sample = trace::SampleId{samples_++};
    return start;
}

void Bursts::finished(Seconds cost) {
    place_.digester.end_sample(trace::SampleId{samples_ - 1});
    ++cost_.stops;
    cost_.stop_time += cost;
    budget_.spent(cost);
    schedule(budget_.next_wait());
}

void Bursts::schedule(Seconds wait) {
    next_tick_ = ptrace::Clock::now() + std::chrono::duration_cast<ptrace::Clock::duration>(wait);
}

}  // namespace shadowprof::shadow
