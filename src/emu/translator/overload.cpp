#include "emu/translator/overload.h"

#include "emu/tuning.h"

namespace shadowprof::emu::translator {

void SignalLoad::arrived() {
    if (on_their_way_since_) return;
    on_their_way_since_ = Clock::now();
    if (deliveries_ != 0) return;
    began_ = *on_their_way_since_;
    taken_ = {};
}

void SignalLoad::count_time(Clock::time_point now, bool others_are_on_their_way) {
    taken_ += now - *on_their_way_since_;
    if (others_are_on_their_way)
        on_their_way_since_ = now;
    else
        on_their_way_since_.reset();
}

void SignalLoad::has_returned(bool others_are_on_their_way) {
    if (on_their_way_since_) count_time(Clock::now(), others_are_on_their_way);
}

void SignalLoad::delivered(bool others_are_on_their_way) {
    if (!on_their_way_since_) return;
    const auto now = Clock::now();
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
