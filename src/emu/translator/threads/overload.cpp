#include "emu/translator/threads/overload.h"

#include "emu/tuning.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

SignalLoad::Time own_time(pid_t pid, pid_t tid) {
    const auto scheduled = proc::scheduled_time(pid, tid);
    return Clock::now() - std::chrono::nanoseconds{scheduled ? scheduled->waited : 0};
}

void SignalLoad::arrived(Time now) {
    if (on_their_way_since_) return;
    on_their_way_since_ = now;
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

void SignalLoad::has_returned(Time now, bool others_are_on_their_way) {
    if (on_their_way_since_) count_time(now, others_are_on_their_way);
}

void SignalLoad::delivered(Time now, bool others_are_on_their_way) {
    if (!on_their_way_since_) return;
    count_time(now, others_are_on_their_way);
    if (++deliveries_ < tuning::deliveries_until_judged ||
        now - began_ < std::chrono::milliseconds{tuning::milliseconds_until_judged})
        return;
    is_too_much_ |= taken_ > tuning::most_time_for_deliveries * (now - began_);
    deliveries_ = 0;
    taken_ = {};
    began_ = now;
}

// What lies below it has returned, or was left by longjmp.
void SignalLoad::entered(std::uint64_t stack) {
    while (!stacks_.empty() && stacks_.back() <= stack) stacks_.pop_back();
    stacks_.push_back(stack);
    is_too_much_ |= stacks_.size() > tuning::deepest_handlers;
}

}  // namespace shadowprof::emu::translator
