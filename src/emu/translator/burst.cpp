#include "emu/translator/burst.h"

#include <algorithm>
#include <cmath>

#include "emu/translator/native_rate/native_time.h"
#include "emu/tuning.h"

namespace shadowprof::emu::translator {

namespace {

bool is_enough(const Work& work) {
    return static_cast<double>(work.blocks) >= tuning::fewest_blocks_to_measure;
}

// Of so many nanoseconds in the cache.
double of_block_in(const Work& work, double nanoseconds) {
    return without_instrumentation(std::max(nanoseconds, 0.0), work) /
           static_cast<double>(work.blocks);
}

}  // namespace

std::uint64_t BurstExperience::ticks_now() {
    std::uint32_t low = 0, high = 0;
    asm volatile("rdtsc" : "=a"(low), "=d"(high));
    return std::uint64_t{high} << 32 | low;
}

BurstExperience::BurstExperience()
    : of_block_(tuning::usual_nanoseconds_of_block),
      blocks_in_segment_(tuning::fewest_blocks_in_segment) {}

// What a thread says may be anything: then it is none.
double BurstExperience::nanoseconds(std::uint64_t from, std::uint64_t to) const {
    const auto ticks = static_cast<double>(ticks_now() - began_ticks_);
    const std::chrono::duration<double, std::nano> passed = Clock::now() - began_;
    if (to < from || !(ticks > 0)) return 0;
    return std::min(static_cast<double>(to - from) * passed.count() / ticks,
                    tuning::longest_part_of_burst);
}

void BurstExperience::learn_of_block(double nanoseconds) {
    const auto followed = nanoseconds < of_block_ ? tuning::followed_down : tuning::followed_up;
    of_block_ *= std::pow(nanoseconds / of_block_, followed);
    has_learned_ = true;
}

// Calls take as long as ever. One that was not made from the cache has a beginning and no end: then
// nothing is known of any.
void Burst::has_asked(const ThreadArea& area, bool counts) {
    if (asked_at_) waited_ += experience_->nanoseconds(*asked_at_, area.went_on_at);
    const auto part = experience_->nanoseconds(area.went_on_at, area.asked_at);
    const auto calls_over = (area.calls_over_high << 32) + area.calls_over_low;
    const auto calls = experience_->nanoseconds(area.calls_began, calls_over);
    const auto computed = calls < part ? part - calls : part;
    asked_at_ = area.asked_at;
    calls_ += area.calls;
    in_calls_ += std::min(calls, part);
    in_cache_ += computed;
    if (counts) lean_ += computed;
}

// New code is in no cache either, and its pages are not mapped yet.
double Burst::disturbance() const {
    return tuning::most_disturbance + waited_;
}

bool Burst::takes_too_long() const {
    return waited_ > tuning::longest_wait_in_burst || stops_ > tuning::most_stops_in_burst;
}

// What disturbs a first part is nothing to its time. In the program's first bursts nobody knows how
// long that is.
bool Burst::says_much() const {
    return experience_->has_learned() && lean_ > tuning::disturbances_that_tell * disturbance();
}

void Burst::measure(const Work& done) {
    const auto usual = experience_->of_block();
    const auto least = usual / tuning::most_of_usual_block_time;
    const auto& before = as_others_.work.blocks > 0 ? as_others_ : first_part_;
    const auto rest = done - before.work;
    if (before.work.blocks > 0 && is_enough(rest)) {
        const auto took = lean_ - before.lean;
        const auto most = std::max(usual * tuning::most_of_usual_block_time,
                                   of_block_in(rest, took - tuning::most_disturbance_of_rest));
        const auto disturbed = length_.of_others > 0 ? 0 : experience_->disturbance_of_rest();
        of_block_ = std::clamp(of_block_in(rest, took - disturbed), least, most);
    } else if (is_enough(done)) {
        of_block_ = std::max(
            std::clamp(usual, of_block_in(done, lean_ - disturbance()), of_block_in(done, lean_)),
            least);
    }
}

// What the rest of a shorter one took longer than what follows says.
void Burst::show_disturbance() {
    const auto rest = as_others_.work - first_part_.work;
    if (as_others_.work.blocks == 0 || !is_enough(rest)) return;
    const auto took = as_others_.lean - first_part_.lean;
    const auto excess = of_block_in(rest, took) - of_block_;
    experience_->learn_disturbance_of_rest(
        std::clamp(excess * static_cast<double>(rest.blocks), 0.0, took));
}

double Burst::blocks_in(double nanoseconds, double blocks, double instructions) const {
    if (nanoseconds > 0) return nanoseconds / of_block_;
    return static_cast<double>(length_.instructions) /
           (blocks > 0 ? instructions / blocks : tuning::usual_instructions_in_block);
}

std::uint64_t Burst::blocks_left(const Work& done) {
    measure(done);
    const auto blocks = static_cast<double>(done.blocks);
    const auto instructions = static_cast<double>(done.instructions);
    const bool was_first_part = done.blocks > 0 && first_part_.work.blocks == 0;
    if (was_first_part)
        first_part_ = {done, lean_};
    else if (done.blocks > 0 && as_others_.work.blocks == 0 && length_.of_others > 0)
        as_others_ = {done, lean_};
    const bool is_as_others = length_.of_others > 0 && as_others_.work.blocks == 0;
    const auto in_all =
        blocks_in(is_as_others ? length_.of_others : length_.nanoseconds, blocks, instructions);
    is_last_part_ = done.blocks > 0 && !is_as_others;
    // The first part tells how long the rest is to be.
    auto left = done.blocks > 0 ? in_all - blocks : in_all * tuning::first_part_of_burst;
    // Where code is new, the rest would pay for that as well, and tell nothing.
    if (was_first_part && !says_much() && waited_ < tuning::most_disturbance)
        left = std::max(left, tuning::blocks_that_tell * tuning::fewest_blocks_to_measure);
    is_over_ = is_last_part_ && left < tuning::negligible_part * in_all;
    return is_over_ ? 0 : static_cast<std::uint64_t>(std::max(1.0, std::ceil(left)));
}

// Of the time in calls, what the kernel computed: the thread is as much awake as it usually is.
double Burst::in_kernel(double in_user_mode) const {
    const auto usual =
        std::min(tuning::usual_nanoseconds_of_call * static_cast<double>(calls_), in_calls_);
    if (!awake_) return usual;
    return std::clamp(*awake_ * (in_user_mode + in_calls_) - in_user_mode, 0.0,
                      std::max(in_calls_ - displaced_, usual));
}

double Burst::covers(const Work& done, std::uint64_t in_windows) const {
    const auto blocks = static_cast<double>(done.blocks);
    const auto instructions_in_block = done.blocks > 0
                                           ? static_cast<double>(done.instructions) / blocks
                                           : tuning::usual_instructions_in_block;
    const auto in_user_mode =
        of_block_ * (blocks + static_cast<double>(in_windows) / instructions_in_block);
    return in_user_mode + in_kernel(in_user_mode);
}

void Burst::had_no_processor(std::uint64_t nanoseconds) {
    if (without_processor_)
        displaced_ = static_cast<double>(nanoseconds - std::min(nanoseconds, *without_processor_));
    else
        without_processor_ = nanoseconds;
}

void Burst::ended(const Work& done) {
    measure(done);
    // What takes longer than any disturbance took as long natively: pages that are touched for the
    // first time, say, in the first part alone.
    const auto least = lean_ - tuning::disturbances_that_tell * disturbance();
    native_ = std::min(std::max(of_block_ * static_cast<double>(done.blocks), least), in_cache_);
    if (is_enough(done - as_others_.work)) show_disturbance();
    if (is_enough(done - first_part_.work) || says_much()) experience_->learn_of_block(of_block_);
}

}  // namespace shadowprof::emu::translator
