// What the clock does besides where an interpreter executes the program, and where threads publish
// the requests that they work for.
#include <algorithm>
#include <utility>

#include "languages/find.h"
#include "proc/process_info.h"
#include "sampling/clock/program_clock.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

// From when its code is mapped on; that it has begun to execute anything is not needed.
void ProgramClock::find_interpreter() {
    if (most_cost_of_close_looks_ <= 0) return;
    interpreter_ = languages::find_interpreter(pid_, *maps_);
    if (!interpreter_) return;
    for (auto& [tid, of] : threads_) {
        begin_to_read(tid, of);
        of.sleeps_in.reset();  // where it sleeps is looked at anew
    }
}

void ProgramClock::forget_interpreter() {
    for (auto& [tid, of] : threads_) end_reading(of);
    interpreter_.reset();
}

void ProgramClock::end_reading(Thread& of) {
    if (of.reader) {
        for (auto& seen : of.reader->take()) take(std::move(seen), of);
        cost_of_ended_readers_ += of.reader->cost();
    }
    // They show what they show.
    for (auto& look : std::exchange(of.unread, {})) looks_.push_back(std::move(look));
    of.reader.reset();
    of.interpreted.reset();
}

// Requests are sought as soon as there are maps. Threads that never run need nobody who reads them
// when they do.
void ProgramClock::look_for_requests() {
    if (most_cost_of_close_looks_ <= 0) return;
    requests_.look_at(maps_);
    if (!requests_.are_published()) return;
    for (auto& [tid, of] : threads_)
        if (!of.reader && of.looks > 0 && requests_.knows(tid)) begin_to_read(tid, of);
}

void ProgramClock::begin_to_read(pid_t tid, Thread& of) {
    const auto interpreted = [&] {
        return interpreter_ ? interpreter_->thread(proc::own_number_of(tid)) : nullptr;
    };
    of.interpreted = interpreted();
    const auto readers =
        std::ranges::count_if(threads_, [](const auto& known) { return !!known.second.reader; });
    if (clock_.is_refused() || static_cast<std::size_t>(readers) >= tuning::most_close_readers)
        return;
    proc::LookBuffer::Refusal why{};
    auto buffer = proc::LookBuffer::open(tid,
                                         {.period = period_,
                                          .stack_size = tuning::clock_stack_size,
                                          .with_kernel = clock_.sees_kernel(),
                                          .at_once = true},
                                         why);
    if (!buffer) return;
    clock_.leave(tid);
    of.reader = std::make_unique<CloseReader>(std::move(*buffer), interpreted(), requests_, period_,
                                              most_cost_of_close_looks_);
}

void ProgramClock::take_close_looks() {
    auto cost = cost_of_ended_readers_;
    for (auto& [tid, of] : threads_) {
        if (!of.reader) continue;
        for (auto& seen : of.reader->take()) take(std::move(seen), of);
        cost += of.reader->cost();
    }
    cost_of_close_looks_ = cost;
}

// What failed to be read stays away for reasons that have nothing to do with what the thread was
// at: so the next look that did not stands for it.
void ProgramClock::take(CloseReader::Seen seen, Thread& of) {
    seen.look.stack = seen.stack;
    auto look = look_of(seen.look, of);
    look.facts.nanoseconds = seen.nanoseconds;
    seen_time_ += seen.nanoseconds;
    ++close_looks_;
    if (requests_.are_published()) look.request = requests_.sight_of(seen.record);
    const bool is_read =
        (seen.glance || !of.interpreted) && look.request.kind != trace::RequestSight::Kind::unknown;
    if (!is_read) {
        of.unread.push_back(std::move(look));
        if (of.unread.size() < tuning::most_unread_looks) return;
        for (auto& unread : std::exchange(of.unread, {})) looks_.push_back(std::move(unread));
        return;
    }
    ++read_looks_;
    look.glance = std::move(seen.glance);
    for (const auto& unread : std::exchange(of.unread, {}))
        look.facts.nanoseconds += unread.facts.nanoseconds;
    looks_.push_back(std::move(look));
}

// Mostly none.
trace::RequestSight ProgramClock::request_of_sleeper(pid_t tid, const Thread& of) {
    if (most_cost_of_close_looks_ <= 0 || !requests_.are_published()) return {};
    requests_.seek_fs(tid, of.sleeps_in->stack);
    return requests_.of_sleeper(tid);
}

// If it sleeps on.
std::optional<languages::Glance> ProgramClock::glance_at_sleeper(pid_t tid, Thread& of) const {
    if (!of.interpreted) return {};
    auto glance = of.interpreted->look();
    const auto time = proc::scheduled_time(pid_, tid);
    return time && time->times == of.time.times ? glance : std::nullopt;
}

}  // namespace shadowprof::sampling
