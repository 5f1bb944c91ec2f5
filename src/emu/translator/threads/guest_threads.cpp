#include "emu/translator/threads/guest_threads.h"

#include <algorithm>
#include <atomic>

#include "emu/syscalls/table.h"
#include "emu/tuning.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

GuestThreads::GuestThreads(ptrace::Tracer& tracer, ProgramCache& cache,
                           ThreadRecording::Place place, bool in_bursts)
    : tracer_(tracer), cache_(cache), place_(place) {
    if (!in_bursts) sample_ = place.numbers.next_sample();
}

GuestThread* GuestThreads::find(pid_t tid) {
    const auto found = guests_.find(tid);
    return found == guests_.end() ? nullptr : &found->second;
}

const GuestThread* GuestThreads::find(pid_t tid) const {
    const auto found = guests_.find(tid);
    return found == guests_.end() ? nullptr : &found->second;
}

GuestThread& GuestThreads::add(ptrace::Thread& thread, bool from_its_start) {
    auto& guest = guests_[thread.tid()];
    guest.thread = &thread;
    trace::TraceStart start;
    start.trace = guest.trace = place_.numbers.next_trace();
    start.sample = guest.sample = *sample_;
    guest.recording.emplace(place_, start.sample, start.trace);
    start.contents = trace::Contents::counts;
    start.from_thread_start = from_its_start;
    if (from_its_start) start.signals.emplace();
    start.thread = proc::thread_name(tracer_.pid(), thread.tid());
    if (++threads_ > 1) start.thread += " #" + std::to_string(threads_);
    start.state.tid = thread.tid();
    if (place_.state_now) start.state = place_.state_now(tracer_.pid(), thread.tid());
    guest.recording->belongs_to(start);
    place_.sink.begin(start);
    guest.has_open_trace = true;
    return guest;
}

GuestThread& GuestThreads::add_burst(ptrace::Thread& thread, const trace::TraceStart& start,
                                     const Burst& burst) {
    const auto* const before = find(thread.tid());
    const auto area = before ? before->area : std::nullopt;
    const auto awake = before ? before->awake : std::nullopt;
    guests_.erase(thread.tid());
    auto& guest = guests_[thread.tid()];
    guest.area = area;
    guest.awake = awake;
    guest.thread = &thread;
    guest.sample = start.sample;
    guest.trace = start.trace;
    guest.has_open_trace = true;
    guest.burst = burst;
    guest.burst_began = Clock::now();
    guest.recording.emplace(place_, start.sample, start.trace);
    guest.recording->belongs_to(start);
    if (!area) return guest;
    cache_.memory().area(*area).answered = Answered::goes_on;
    guest.recording->begin_stream(cache_.memory(), *area);
    return guest;
}

void GuestThreads::note_displacement(GuestThread& guest) const {
    const auto time = proc::scheduled_time(tracer_.pid(), guest.thread->tid());
    if (time) guest.burst->had_no_processor(time->waited);
}

void GuestThreads::note_beginning(GuestThread& guest) const {
    const auto time = proc::scheduled_time(tracer_.pid(), guest.thread->tid());
    if (!time) return;
    guest.burst->had_no_processor(time->waited);
    const GuestThread::Awake now{Clock::now(), time->ran + time->waited};
    if (const auto before = std::exchange(guest.awake, now)) {
        const std::chrono::nanoseconds was_awake{now.nanoseconds - before->nanoseconds};
        guest.burst->is_awake(std::min(was_awake / Seconds{now.at - before->at}, 1.0));
    }
}

void GuestThreads::tell_whether_to_call() {
    auto& exchange = cache_.memory().exchange();
    exchange.may_call = tracer_.threads().size() == 1;
    if (exchange.may_call == 0) exchange.bell_is_mute = 1;
}

void GuestThreads::look_at_silent() {
    if (!cache_.exists() || cache_.memory().exchange().may_call != 0) return;
    const auto began_long_ago =
        Clock::now() - std::chrono::milliseconds{tuning::longest_sleep_in_burst};
    bool may_any_ask = false;
    for (auto& [tid, guest] : guests_) {
        if (!guest.burst || !guest.in_cache()) continue;
        auto& area = cache_.memory().area(*guest.area);
        // One that has been called out for signals gets them here.
        if (std::atomic_ref{area.in_call}.load() != 0 && guest.burst_began < began_long_ago &&
            !guest.awaits_signals() && makes_ask_behind_call(guest))
            area.driven = Driven::leaves;
        may_any_ask |= area.driven != Driven::leaves;
    }
    cache_.memory().exchange().bell_is_mute = may_any_ask;
}

bool GuestThreads::admit(GuestThread& guest) {
    if (guest.area) return true;
    guest.area = cache_.memory().take_area();
    if (!guest.area) return false;
    auto& area = cache_.memory().area(*guest.area);
    area = {};
    area.place = cache_.memory().place_of_area(*guest.area);
    area.answered = Answered::goes_on;
    area.way_out = cache_.translator().way_out(*guest.area).value;
    guest.recording->begin_stream(cache_.memory(), *guest.area);
    return true;
}

void GuestThreads::read_stream(GuestThread& guest) {
    const auto executed = guest.recording->read().segments;
    if (!guest.burst) {
        if (cache_.learn(executed, place_.random)) guest.recording->units_are_longer();
    } else if (!executed.empty()) {
        to_learn_.insert(to_learn_.end(), executed.begin(), executed.end());
        to_learn_.push_back(trace::segment_discontinuity);
    }
}

void GuestThreads::learn() {
    if (to_learn_.empty()) return;
    cache_.learn(to_learn_, place_.random);
    expect_in_windows();
    to_learn_.clear();
}

// A window comes to code that bursts have executed before, but in another version, which is
// translated now, while the program runs.
void GuestThreads::expect_in_windows() {
    for (const auto segment : to_learn_) {
        if (segment == trace::segment_discontinuity) continue;
        const auto number = static_cast<std::size_t>(segment);
        if (number >= is_expected_in_windows_.size())
            is_expected_in_windows_.resize(2 * number + 1);
        if (is_expected_in_windows_[number]) continue;
        is_expected_in_windows_[number] = true;
        const auto start = place_.code.block(place_.segments.at(segment).front()).start;
        const bool has_loads = place_.loads.wanted;
        if (place_.values.wanted()) cache_.translator().expect(start, Version::values);
        if (has_loads) cache_.translator().expect(start, Version::accesses);
        if (has_loads && place_.loads.timed) cache_.translator().expect(start, Version::timed);
    }
}

// Threads may take part in the same sample.
bool GuestThreads::is_any_open_of(trace::SampleId sample) const {
    return std::ranges::any_of(guests_, [sample](const auto& entry) {
        return entry.second.has_open_trace && entry.second.sample == sample;
    });
}

void GuestThreads::end(GuestThread& guest, std::string reason, bool exited,
                       std::optional<Address> continuation) {
    if (std::exchange(guest.has_open_trace, false)) {
        trace::TraceEnd end;
        guest.recording->look_whether_in_window();
        read_stream(guest);
        guest.recording->end_stream();
        if (auto& burst = guest.burst) {
            note_displacement(guest);
            burst->ended(guest.recording->stretches(), guest.recording->work());
            end.covers =
                burst->covers(guest.recording->work(), guest.recording->instructions_in_windows());
            outcomes_.push_back({.extra = burst->extra(),
                                 .waited = burst->waited(),
                                 .late = burst->late(),
                                 .stopped = burst->stopped_for(),
                                 .calls = burst->calls(),
                                 .stops = burst->stops(),
                                 .is_complete = guest.is_complete});
        }
        end.trace = guest.trace;
        end.reason = std::move(reason);
        end.thread_exited = exited;
        if (!exited && !continuation)
            if (const auto registers = guest.thread->registers()) continuation = registers->rip();
        if (continuation) {
            end.continuation = *continuation;
            end.continuation_place = place_.code.place_of(*continuation);
        }
        place_.sink.end(std::move(end));
        if (guest.burst && !is_any_open_of(guest.sample)) place_.sink.end_sample(guest.sample);
        guest.untranslated = true;
    }
    guest.state = GuestThread::State::native;
    // A thread that has left by itself may still be on its way, so it keeps its area.
    if (guest.burst && !exited) return;
    if (guest.area && cache_.exists()) cache_.memory().give_area(*guest.area);
    guest.area.reset();
}

void GuestThreads::remove(pid_t tid) {
    const auto found = guests_.find(tid);
    end(found->second, "exit", true);
    guests_.erase(found);
}

void GuestThreads::remove_all_but(const GuestThread& survivor) {
    for (auto at = guests_.begin(); at != guests_.end();) {
        if (&at->second == &survivor) {
            ++at;
            continue;
        }
        end(at->second, "exit", true);
        at = guests_.erase(at);
    }
}

void GuestThreads::remove_all() {
    for (auto& [tid, guest] : guests_) end(guest, "exit", true);
    guests_.clear();
}

void GuestThreads::remove_missed() {
    if (ends_may_be_missed_) remove_ended();
}

void GuestThreads::remove_ended() {
    ends_may_be_missed_ = false;
    for (auto at = guests_.begin(); at != guests_.end();) {
        if (tracer_.thread(at->first) == at->second.thread) {
            ++at;
            continue;
        }
        end(at->second, "exit", true);
        at = guests_.erase(at);
    }
}

bool GuestThreads::any_with_open_trace() const {
    return std::any_of(guests_.begin(), guests_.end(),
                       [](const auto& entry) { return entry.second.has_open_trace; });
}

bool GuestThreads::may_any_be_inside() const {
    return std::any_of(guests_.begin(), guests_.end(), [](const auto& entry) {
        return entry.second.in_cache() || entry.second.is_leaving();
    });
}

bool GuestThreads::any_awaits_signals() const {
    return std::any_of(guests_.begin(), guests_.end(),
                       [](const auto& entry) { return entry.second.awaits_signals(); });
}

bool GuestThreads::waits_for_answer(const GuestThread& guest) const {
    return guest.in_cache() &&
           std::atomic_ref{cache_.memory().area(*guest.area).answered}.load() == Answered::not_yet;
}

bool GuestThreads::has_left(const GuestThread& guest) const {
    return guest.in_cache() && guest.burst &&
           std::atomic_ref{cache_.memory().area(*guest.area).answered}.load() == Answered::has_left;
}

bool GuestThreads::any_in_units() const {
    return std::any_of(guests_.begin(), guests_.end(), [&](const auto& entry) {
        const auto& guest = entry.second;
        return guest.in_cache() && !guest.asks_behind_call && !waits_for_answer(guest);
    });
}

bool GuestThreads::may_not_be_interrupted(const GuestThread& guest) const {
    if (!guest.asks_behind_call) return false;
    auto& area = cache_.memory().area(*guest.area);
    const auto* row = find_system_call(static_cast<std::int32_t>(area.rax));
    return std::atomic_ref{area.in_call}.load() != 0 && row &&
           row->in_cache == CallInCache::undivided;
}

bool GuestThreads::any_can_leave() const {
    return std::any_of(guests_.begin(), guests_.end(), [&](const auto& entry) {
        const auto& guest = entry.second;
        return guest.in_cache() && !may_not_be_interrupted(guest);
    });
}

// The order matters: a thread that is in its call after the place was set finds it.
bool GuestThreads::makes_ask_behind_call(GuestThread& guest) const {
    auto& area = cache_.memory().area(*guest.area);
    std::atomic_ref{area.behind_call}.store(cache_.translator().ask_behind_call().value);
    return std::atomic_ref{area.in_call}.load() != 0;
}

void GuestThreads::call_those_in_units() {
    for (auto& [tid, guest] : guests_) {
        if (!guest.in_cache() || waits_for_answer(guest) || guest.thread->stopped()) continue;
        guest.asks_behind_call = makes_ask_behind_call(guest);
        if (!guest.asks_behind_call) guest.thread->interrupt();
    }
}

void GuestThreads::call_all() {
    call_those_in_units();
    for (auto& [tid, guest] : guests_)
        if (guest.in_cache() && !guest.thread->stopped() && !guest.thread->is_asked() &&
            !may_not_be_interrupted(guest))
            guest.thread->interrupt();
}

}  // namespace shadowprof::emu::translator
