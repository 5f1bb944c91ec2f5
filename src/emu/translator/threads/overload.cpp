#include "emu/translator/threads/overload.h"

#include <utility>

#include "emu/tuning.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

namespace {

// A clock that stands still while the thread waits for a processor. It reads a file.
Clock::time_point own_time(pid_t pid, pid_t tid) {
    const auto scheduled = proc::scheduled_time(pid, tid);
    return Clock::now() - std::chrono::nanoseconds{scheduled ? scheduled->waited : 0};
}

}  // namespace

void SignalLoad::arrived(pid_t pid, pid_t tid) {
    if (on_their_way_since_) return;
    on_their_way_since_ = own_time(pid, tid);
    if (deliveries_ != 0) return;
    began_ = *on_their_way_since_;
    taken_ = {};
}

void SignalLoad::count_time(Time now, bool others_are_on_their_way) {
    taken_ += now - *on_their_way_since_;
    if (others_are_on_their_way)
        on_their_way_since_ = now;
    else
        on_their_way_since_.reset();
}

void SignalLoad::has_returned(pid_t pid, pid_t tid, bool others_are_on_their_way) {
    if (on_their_way_since_) count_time(own_time(pid, tid), others_are_on_their_way);
}

bool SignalLoad::delivered(pid_t pid, pid_t tid, bool others_are_on_their_way,
                           std::uint64_t instructions) {
    if (!on_their_way_since_) {
        ++own_;
        return false;
    }
    const auto now = own_time(pid, tid);
    count_time(now, others_are_on_their_way);
    if (++deliveries_ < tuning::deliveries_until_judged ||
        now - began_ < std::chrono::milliseconds{tuning::milliseconds_until_judged})
        return true;
    const Seconds needed{
        static_cast<double>(instructions - std::exchange(executed_, instructions)) *
        tuning::usual_seconds_of_instruction};
    const bool does_something = std::exchange(own_, 0) > tuning::part_of_own_signals * deliveries_;
    const bool is_bad = !does_something &&
                        taken_ > tuning::most_time_for_deliveries * (now - began_) &&
                        needed < tuning::least_time_for_program * Seconds{now - began_};
    is_too_much_ |= is_bad && was_bad_;
    was_bad_ = is_bad;
    deliveries_ = 0;
    taken_ = {};
    began_ = now;
    return true;
}

// What lies below it has returned, or was left by longjmp.
void SignalLoad::entered(std::uint64_t stack, bool was_waited_for) {
    while (!handlers_.empty() && handlers_.back().stack <= stack) handlers_.pop_back();
    handlers_.push_back({stack, was_waited_for});
    is_too_much_ |= handlers_.size() > tuning::deepest_handlers;
}

}  // namespace shadowprof::emu::translator
