// A translated process whose threads are in the cache for bursts only.
#include <utility>

#include "base/clock.h"
#include "emu/translator/translated_process.h"
#include "emu/tuning.h"

namespace shadowprof::emu::translator {

namespace {

using ptrace::EventKind;
using ptrace::Registers;

constexpr auto *burst_is_complete = "sample size", *too_much_new_code = "too much new code",
               *too_many_stops = "too many stops";

}  // namespace

const char* TranslatedProcess::why_over(const GuestThread& guest) {
    if (!guest.burst->takes_too_long()) return burst_is_complete;
    return guest.burst->stops() > tuning::most_stops_in_burst ? too_many_stops : too_much_new_code;
}

std::optional<Clock::time_point> TranslatedProcess::make_cache(ptrace::Thread& thread,
                                                               std::string& why) {
    threads_.ends_may_be_missed();
    if (!cache_.make(thread, why)) return {};
    return cache_.went_on_at();
}

Clock::time_point TranslatedProcess::begin_burst(ptrace::Thread& thread, const Registers& registers,
                                                 const trace::TraceStart& start,
                                                 BurstLength length) {
    auto& guest = threads_.add_burst(thread, start, Burst{length, experience_});
    if (threads_.admit(guest)) {
        auto& recording = *guest.recording;
        recording.expect(guest.burst->expected_blocks(), experience_.of_block());
        recording.drive(guest.burst->segments_left({}), experience_.blocks_in_units());
    }
    traffic_.enter(guest, registers);
    guest.burst->was_let_go();
    const auto went_on = Clock::now();
    threads_.note_beginning(guest);
    tracer_.listen();
    return went_on;
}

// The thread would not ask if it had more parts, or there were no signals for it. If only its time
// counts it need not wait until we have looked at what it wrote.
void TranslatedProcess::go_on_in_burst(GuestThread& guest) {
    const bool is_in_parts = guest.recording->driven() == Driven::through_parts;
    if (is_in_parts && guest.burst->is_of_given_time() && !is_over(guest))
        guest.recording->set_aside();
    else
        threads_.read_stream(guest);
    if (is_over(guest)) return;
    guest.recording->drive_on(guest.burst->segments_left(guest.recording->work()));
}

void TranslatedProcess::look_at_memory(const proc::Maps& maps) {
    if (cache_.exists() && !cache_.memory().is_there(maps))
        have_everybody_leave(program_took_it, 0);
}

void TranslatedProcess::look_at_memory(const ptrace::Thread& stopped) {
    if (cache_.exists() && !cache_.memory().is_there(stopped.tid()))
        have_everybody_leave(program_took_it, stopped.tid());
}

bool TranslatedProcess::is_in_burst(const ptrace::Thread& thread) const {
    const auto* const guest = threads_.find(thread.tid());
    return guest && guest->has_open_trace;
}

bool TranslatedProcess::is_over(const GuestThread& guest) const {
    return guest.burst && !guest.awaits_signals() &&
           (guest.has_window_over || guest.burst->is_over(guest.recording->work()));
}

// As long as signals that were held are on their way, it goes on.
bool TranslatedProcess::takes_too_long(GuestThread& guest) const {
    if (!guest.burst || guest.awaits_signals() || !guest.burst->takes_too_long()) return false;
    threads_.note_displacement(guest);
    return guest.burst->takes_too_long();
}

// It is at a handler's first instruction, in its own code. Where signals come faster than they can
// be handled in the cache, those that are held never end.
void TranslatedProcess::leave_in_handler(GuestThread& guest, Address continuation) {
    guest.in_system_call = false;
    if (guest.awaits_signals()) return traffic_.await_signals_outside(guest);
    threads_.read_stream(guest);
    guest.recording->discontinuity(continuation, {});
    threads_.end(guest, why_over(guest), false);
    guest.thread->resume();
}

// It has left instead of asking.
bool TranslatedProcess::notice_whether_left(GuestThread& guest) {
    if (!threads_.has_left(guest)) return false;
    const auto area = cache_.read_area(*guest.area);
    guest.recording->look_whether_in_window();
    guest.burst->has_asked(area);
    guest.is_complete = true;
    finish_burst(guest, area, burst_is_complete);
    guest.state = GuestThread::State::leaving;
    CacheTraffic::give_signals_back(guest);
    return true;
}

// Of a thread that waits for an answer.
void TranslatedProcess::end_burst(GuestThread& guest, const ThreadArea& area, const char* reason) {
    traffic_.answer_natively(guest);
    finish_burst(guest, area, reason);
    guest.state = GuestThread::State::leaving;
}

void TranslatedProcess::finish_burst(GuestThread& guest, const ThreadArea& area,
                                     const char* reason) {
    guest.recording->left_at(area.stream);
    threads_.end(guest, reason, false, Address{area.pc});
    expect({area.pc});
}

// Whether a stop is of a burst. A thread that has ended its burst is in its own code from then on.
bool TranslatedProcess::is_of_burst(GuestThread& guest, const ptrace::Event& event) {
    guest.thread = event.thread;
    switch (event.kind) {
        case EventKind::thread_gone:
            threads_.remove(event.thread->tid());
            return false;
        case EventKind::process_gone:
        case EventKind::exec:
            return false;
        default:
            notice_whether_left(guest);
            if (guest.is_leaving() && !traffic_.settle(guest)) return true;
            return guest.has_open_trace || guest.in_cache();
    }
}

void TranslatedProcess::expect(Address pc) {
    if (cache_.exists() && traffic_.may_enter()) cache_.translator().expect(pc, Version::lean);
}

void TranslatedProcess::program_is_new() {
    threads_.remove_all();
    traffic_.stop_emptying();
    cache_.drop();
    cache_.try_again();
}

}  // namespace shadowprof::emu::translator
