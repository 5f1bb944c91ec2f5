#include "emu/translator/in_place/burst.h"

#include <algorithm>

#include "emu/tuning.h"

namespace shadowprof::emu::translator {

std::uint64_t BurstExperience::ticks_now() {
    std::uint32_t low = 0, high = 0;
    asm volatile("rdtsc" : "=a"(low), "=d"(high));
    return std::uint64_t{high} << 32 | low;
}

BurstExperience::BurstExperience()
    : nanoseconds_(tuning::nanoseconds_of_instruction_at_first *
                   static_cast<double>(tuning::instructions_at_first)) {
    constexpr auto instructions = static_cast<double>(tuning::instructions_at_first),
                   blocks = instructions / tuning::usual_instructions_in_block,
                   segments = blocks / tuning::fewest_blocks_in_segment;
    work_ = {.blocks = static_cast<std::uint64_t>(blocks),
             .instructions = tuning::instructions_at_first,
             .segments = static_cast<std::uint64_t>(segments)};
}

double BurstExperience::ticks_in_nanosecond() const {
    const std::chrono::duration<double, std::nano> passed = Clock::now() - began_;
    return static_cast<double>(ticks_now() - began_ticks_) / std::max(passed.count(), 1.0);
}

// What a thread says may be anything: then it is none.
double BurstExperience::nanoseconds(std::uint64_t from, std::uint64_t to) const {
    const auto rate = ticks_in_nanosecond();
    if (to < from || !(rate > 0)) return 0;
    return std::min(static_cast<double>(to - from) / rate, tuning::longest_part_of_burst);
}

std::uint64_t BurstExperience::ticks(double nanoseconds) const {
    return static_cast<std::uint64_t>(nanoseconds * ticks_in_nanosecond());
}

double BurstExperience::of_instruction() const {
    return nanoseconds_ / static_cast<double>(work_.instructions);
}

double BurstExperience::instructions_in(std::uint64_t Work::*unit) const {
    return static_cast<double>(work_.instructions) /
           static_cast<double>(std::max<std::uint64_t>(work_.*unit, 1));
}

// Of late rather than in all.
void BurstExperience::learn(const Work& work, double nanoseconds) {
    const auto kept = [](std::uint64_t sum) {
        return static_cast<std::uint64_t>(static_cast<double>(sum) * tuning::kept_of_experience);
    };
    work_ = {kept(work_.blocks), kept(work_.instructions), kept(work_.indirect),
             kept(work_.segments)};
    work_ += work;
    nanoseconds_ = nanoseconds_ * tuning::kept_of_experience + nanoseconds;
}

// Calls take as long as ever. One that was not made from the cache has a beginning and no end: then
// nothing is known of any.
void Burst::has_asked(const ThreadArea& area) {
    if (stays_.empty()) late_ = experience_->nanoseconds(let_go_at_, area.went_on_at);
    if (asked_at_) waited_ += experience_->nanoseconds(*asked_at_, area.went_on_at);
    const auto part = experience_->nanoseconds(area.went_on_at, area.asked_at);
    const auto calls_over = (area.calls_over_high << 32) + area.calls_over_low;
    const auto calls = experience_->nanoseconds(area.calls_began, calls_over);
    const auto computed = calls < part ? part - calls : part;
    asked_at_ = area.asked_at;
    calls_ += area.calls;
    in_calls_ += std::min(calls, part);
    in_cache_ += computed;
    stays_.push_back({area.went_on_at, area.asked_at, computed});
    window_began_ = area.window_began;
}

bool Burst::takes_too_long() const {
    return waited_ - displaced_ > tuning::longest_wait_in_burst ||
           stops_ > tuning::most_stops_in_burst;
}

// What is native in between, a handler say, counts as well.
double Burst::stopped_for() const {
    if (stops_ == 0 || stays_.empty()) return 0;
    const auto all = experience_->nanoseconds(let_go_at_, stays_.back().until);
    return std::max(all - late_ - in_cache_ - in_calls_ - waited_ - displaced_, 0.0);
}

std::uint64_t Burst::ticks_left() const {
    if (length_.nanoseconds == 0) return experience_->ticks(tuning::longest_part_of_burst);
    return experience_->ticks(std::max(length_.nanoseconds - in_cache_ - in_calls_, 0.0));
}

std::uint64_t Burst::segments_left(const Work& done) const {
    if (length_.nanoseconds > 0) return ~std::uint64_t{0};
    const auto left = length_.instructions - std::min(length_.instructions, done.instructions);
    return static_cast<std::uint64_t>(static_cast<double>(left) /
                                      experience_->instructions_in_segment());
}

bool Burst::is_over(const Work& done) const {
    if (length_.nanoseconds == 0) return done.instructions >= length_.instructions;
    return in_cache_ + in_calls_ > (1 - tuning::negligible_part) * length_.nanoseconds;
}

double Burst::expected_blocks() const {
    const auto nanoseconds = length_.nanoseconds > 0 ? length_.nanoseconds
                                                     : static_cast<double>(length_.instructions) *
                                                           experience_->of_instruction();
    return nanoseconds / experience_->of_block();
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
    const auto in_user_mode = native_ + of_instruction(done) * static_cast<double>(in_windows);
    return in_user_mode + in_kernel(in_user_mode);
}

void Burst::had_no_processor(std::uint64_t nanoseconds) {
    if (without_processor_)
        displaced_ = static_cast<double>(nanoseconds - std::min(nanoseconds, *without_processor_));
    else
        without_processor_ = nanoseconds;
}

// In what is warm, if that tells enough.
double Burst::of_instruction(const Work& done) const {
    if (static_cast<double>(warm_.blocks) >= tuning::fewest_blocks_to_measure)
        return warm_time_ / static_cast<double>(warm_.instructions);
    return done.instructions > 0 && native_ > 0 ? native_ / static_cast<double>(done.instructions)
                                                : experience_->of_instruction();
}

// Warm is what begins some time after the thread came into the cache, and was not held up. All else
// took as long, instruction for instruction, unless it took longer than any disturbance explains.
void Burst::ended(std::span<const Stretch> stretches, const Work& done) {
    // Before it began it waited for a processor, too.
    const auto before_it_began = std::min(late_, displaced_);
    late_ -= before_it_began;
    displaced_ -= before_it_began;
    // In windows code is slower.
    for (const auto& stay : stays_) lean_ += lean_part_of(stay);
    auto timed = times_of(stretches);
    // Time without a processor was in one of them.
    const auto longest = std::ranges::max_element(timed, {}, &Timed::took);
    if (longest != timed.end()) longest->took -= std::min(displaced_, longest->took);
    double warm_lean = 0;
    for (const auto& [work, took, is_warm] : timed) {
        if (!is_warm) continue;
        warm_ += work;
        warm_lean += took;
    }
    const auto lean = std::max(lean_ - displaced_, 0.0);
    if (static_cast<double>(warm_.blocks) >= tuning::fewest_blocks_to_measure && warm_lean > 0) {
        warm_time_ = native_time(warm_lean, warm_);
        native_ =
            warm_time_ + native_time_like(warm_time_ / static_cast<double>(warm_.instructions),
                                          done - warm_, std::max(lean - warm_lean, 0.0));
        experience_->learn(warm_, warm_time_);
    } else {
        warm_ = {};
        native_ = native_time_like(experience_->of_instruction(), done, lean);
    }
}

double Burst::lean_part_of(const Stay& stay) const {
    if (window_began_ == 0 || window_began_ >= stay.until) return stay.computed;
    if (window_began_ <= stay.from) return 0;
    return std::max(stay.computed - experience_->nanoseconds(window_began_, stay.until), 0.0);
}

// Of so many nanoseconds in the cache.
double Burst::native_time(double in_cache, const Work& work) const {
    const auto instructions = std::max(static_cast<double>(work.instructions), 1.0);
    const auto besides = tuning::instructions_for_block * static_cast<double>(work.blocks) +
                         tuning::instructions_for_indirect * static_cast<double>(work.indirect);
    const auto of_caches = std::min(tuning::nanoseconds_of_fresh * static_cast<double>(work.fresh),
                                    tuning::most_of_fresh * in_cache);
    return (in_cache - of_caches) * instructions / (instructions + besides);
}

// Of code that ran in the cache for so long and was disturbed.
double Burst::native_time_like(double of_instruction, const Work& work, double lean) const {
    const auto expected = of_instruction * static_cast<double>(work.instructions);
    if (lean <= 0) return expected;  // its times cannot be
    const auto most = native_time(lean, work);
    const auto least = std::max(most - tuning::most_disturbance - waited_, 0.0);
    return std::clamp(expected, least, most);
}

// Those within one stay. In the first one of a stay it was held up.
std::vector<Burst::Timed> Burst::times_of(std::span<const Stretch> stretches) const {
    std::vector<Timed> timed;
    Stretch before{};
    auto stay = stays_.begin();
    for (const auto& stretch : stretches) {
        for (; stay != stays_.end() && stay->until < stretch.until; ++stay) before = {};
        if (stay == stays_.end()) break;
        if (before.until != 0) {
            const auto calls = experience_->nanoseconds(stretch.calls_began - before.calls_began,
                                                        stretch.calls_over - before.calls_over);
            const auto took = experience_->nanoseconds(before.until, stretch.until) - calls;
            const bool is_warm =
                experience_->nanoseconds(stay->from, before.until) > tuning::cold_for;
            timed.push_back({stretch.work, std::max(took, 0.0), is_warm});
        }
        before = stretch;
    }
    return timed;
}

}  // namespace shadowprof::emu::translator
