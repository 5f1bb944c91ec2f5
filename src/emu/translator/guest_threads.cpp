#include "emu/translator/guest_threads.h"

#include <algorithm>
#include <atomic>

#include "emu/syscalls/table.h"

namespace shadowprof::emu::translator {

GuestThread* GuestThreads::find(pid_t tid) {
    const auto found = guests_.find(tid);
    return found == guests_.end() ? nullptr : &found->second;
}

GuestThread& GuestThreads::add(ptrace::Thread& thread, bool from_its_start) {
    auto& guest = guests_[thread.tid()];
    guest.thread = &thread;
    trace::TraceStart start;
    start.trace = guest.trace = place_.numbers.next_trace();
    start.sample = sample_;
    guest.recording.emplace(place_, sample_, start.trace);
    start.contents = trace::Contents::counts;
    start.from_thread_start = from_its_start;
    place_.sink.begin(start);
    return guest;
}

bool GuestThreads::admit(GuestThread& guest) {
    if (guest.area) return true;
    guest.area = cache_.memory().take_area();
    if (!guest.area) return false;
    auto& area = cache_.memory().area(*guest.area);
    area = {};
    area.place = cache_.memory().place_of_area(*guest.area);
    area.answered = 1;
    guest.recording->begin_stream(cache_.memory(), *guest.area);
    return true;
}

void GuestThreads::read_stream(GuestThread& guest) {
    if (cache_.learn(guest.recording->read().segments, place_.random))
        guest.recording->units_are_longer();
}

void GuestThreads::end(GuestThread& guest, std::string reason, bool exited) {
    if (!guest.untranslated) {
        read_stream(guest);
        guest.recording->end_stream();
        trace::TraceEnd end;
        end.trace = guest.trace;
        end.reason = std::move(reason);
        end.thread_exited = exited;
        if (const auto registers = exited ? std::nullopt : guest.thread->registers()) {
            end.continuation = registers->rip();
            end.continuation_place = place_.code.place_of(registers->rip());
        }
        place_.sink.end(std::move(end));
        guest.untranslated = true;
    }
    if (guest.area && cache_.exists()) cache_.memory().give_area(*guest.area);
    guest.area.reset();
    guest.state = GuestThread::State::native;
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

bool GuestThreads::any_in_cache() const {
    return std::any_of(guests_.begin(), guests_.end(),
                       [](const auto& entry) { return entry.second.in_cache(); });
}

bool GuestThreads::waits_for_answer(const GuestThread& guest) const {
    return guest.in_cache() &&
           std::atomic_ref{cache_.memory().area(*guest.area).answered}.load() == 0;
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
