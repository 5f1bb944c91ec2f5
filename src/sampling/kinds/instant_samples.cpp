#include "sampling/kinds/instant_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/heap.h"
#include "machine/processor_time.h"
#include "ptrace/call_stack.h"
#include "sampling/kinds/kind_parts.h"
#include "sampling/schedule/time_source.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

constexpr double nanoseconds_a_second = 1e9, nanoseconds_a_millisecond = 1e6;

}  // namespace

InstantSamples::InstantSamples(SamplerContext place, std::shared_ptr<Pacer> pacer,
                               std::uint64_t sample_size)
    : SampleKind(std::move(pacer)),
      place_(std::move(place)),
      sample_size_(sample_size),
      known_(place_.modules, place_.options.keeps_code),
      process_(place_.tracer, place_.code, place_.segments, place_.digester, place_.numbers, known_,
               {.values = values_of(place_),
                .loads = loads_of(place_),
                .seed = place_.random(),
                .in_bursts = true}) {}

// Code that has come or gone meanwhile is noticed now, while the program runs.
bool InstantSamples::prepare() {
    look_after();
    place_.code.time_has_passed();
    if (const auto maps = place_.code.maps()) process_.look_at_memory(*maps);
    give_up_if_abandoned();
    is_core_free_ = pacer().prices().is_any_core_free();
    if (is_still_cold()) {
        // The first sample would stand for all that time, and outweigh many.
        pacer().takes_over();
        return false;
    }
    const auto& options = place_.options;
    is_in_company_ =
        options.all_threads || (options.looks_at_sharing && place_.tracer.threads().size() > 1 &&
                                place_.random.chance(tuning::part_in_company));
    return !obstacle();
}

// What is likely to be executed is translated before the first burst.
bool InstantSamples::is_still_cold() const {
    return is_work_left_ && Clock::now() < began_ + tuning::longest_warming;
}

bool InstantSamples::may_begin_in(const ptrace::Thread& thread) const {
    return !process_.is_in_burst(thread);
}

// To put the cache into the program is no sample. Where a burst makes many calls it goes through
// all that is between calls, wherever it begins. Programs that are mostly in the kernel would not
// be seen at all otherwise: between two calls they are gone before an interrupt arrives.
bool InstantSamples::may_begin_behind_call() const {
    if (!process_.has_begun()) return true;
    return calls_ ? *calls_ >= tuning::calls_in_burst : refused_ >= tuning::refused_until_tried;
}

void InstantSamples::has_asked(const ptrace::Thread& thread) {
    if (auto* const site = place_.foothold.fork_site()) site->look_ahead(thread);
}

// In the cache a thread makes calls of ours, and its own ones from another place. It is let go on.
bool InstantSamples::refuses(ptrace::Thread& thread) {
    if (place_.foothold.fork_site()->is_confined_anew(thread))
        give_up({inject::because_it_confined_itself});
    else
        process_.look_at_memory(thread);
    give_up_if_abandoned();
    if (obstacle()) thread.resume();
    return obstacle().has_value();
}

void InstantSamples::give_up_if_abandoned() {
    if (const auto* const why = process_.why_abandoned()) give_up({why});
}

void InstantSamples::begin(ptrace::Thread& thread, const ptrace::Registers& registers) {
    const auto stopped = Clock::now();
    if (!process_.has_begun()) {
        const auto before = machine::computed(CLOCK_THREAD_CPUTIME_ID);
        const auto went_on = prepare_program(thread);
        if (!went_on) thread.resume();
        // Once; it does not make samples dearer.
        pacer().pay_once(went_on.value_or(Clock::now()) - stopped,
                         machine::computed(CLOCK_THREAD_CPUTIME_ID) - before);
        pacer().finished(Seconds{0}, Seconds{0});
        return;
    }
    if (refuses(thread)) {
        pacer().finished(Clock::now() - stopped);
        return;
    }
    length_of_last_ = next_length();
    last_ = next_sample(place_, pacer(), thread);
    last_->contents = trace::Contents::counts;
    last_->has_company = is_in_company_;
    begin_burst(thread, registers, *last_);
    pacer().finished(last_began_ - stopped, tuning::unseen_in_place);
    attend();
}

// Its Trace is one more of the same sample: what threads do at the same time is no independent
// evidence.
void InstantSamples::join(ptrace::Thread& thread, const ptrace::Registers& registers) {
    const auto stopped = Clock::now();
    if (!last_) {
        thread.resume();
        return;
    }
    if (refuses(thread)) return;
    auto start = *last_;
    start.trace = place_.numbers.next_trace();
    place_.requests.is_stopped(thread.tid(), {registers.raw.fs_base}, registers.rip());
    tell_thread(place_, start, thread.tid());
    tell_request(place_, start.sample, thread.tid());
    begin_burst(thread, registers, start);
    pacer().held_again(last_began_ - stopped);
    attend();
}

void InstantSamples::begin_burst(ptrace::Thread& thread, const ptrace::Registers& registers,
                                 const trace::TraceStart& start) {
    // It has run on since, and other code may lie where some was.
    place_.code.code_may_have_moved();
    place_.code.maps();
    place_.digester.begin(start, ptrace::snapshot_stack(place_.tracer.pid(), registers),
                          place_.code.maps());
    process_.answers_at_once(is_core_free_);
    last_began_ = process_.begin_burst(thread, registers, start, length_of_last_);
    next_look_ = after(Clock::now(), tuning::between_looks_at_bursts);
}

// A thread whose request is answered at once need not sleep, and two wake-ups take as long as the
// burst itself.
void InstantSamples::attend() {
    if (!is_core_free_) return;
    const auto began = Clock::now();
    const auto before = machine::computed(CLOCK_THREAD_CPUTIME_ID);
    auto until = began + tuning::attention_to_burst;
    while (process_.has_open_bursts() && Clock::now() < until)
        if (process_.answer() && until < began + tuning::longest_attention)
            until = Clock::now() + tuning::attention_to_burst;
    pacer().pay_for_computing(machine::computed(CLOCK_THREAD_CPUTIME_ID) - before);
}

// Each has a price; what they were seen to take beyond that comes on top.
void InstantSamples::pay_for_stops(const emu::translator::BurstOutcome& outcome) {
    const auto usual = pacer().prices().of_passing_stop() * static_cast<double>(outcome.stops);
    pacer().pay_for_passing_stops(static_cast<int>(outcome.stops));
    pacer().pay(Cause::other_stops,
                std::max(Seconds{outcome.stopped / nanoseconds_a_second} - usual, Seconds{0}));
}

// The first burst comes later: until then some of the code is translated.
std::optional<Clock::time_point> InstantSamples::prepare_program(ptrace::Thread& thread) {
    auto& foothold = place_.foothold;
    if (!foothold.fork_site() && !foothold.gain(thread)) {
        if (!foothold.why_never().empty()) give_up({foothold.why_never()});
        return {};
    }
    std::string why;
    const auto went_on = process_.make_cache(thread, why);
    if (went_on)
        next_look_ = Clock::now();
    else if (++refusals_ == tuning::most_failures)
        give_up({why});
    return went_on;
}

emu::translator::BurstLength InstantSamples::next_length() const {
    if (const auto& time = place_.options.sample_time)
        return {sample_size_, time->count() * nanoseconds_a_second};
    if (!place_.options.may_be_shorter) return {sample_size_, 0};
    return {sample_size_, tuning::usual_burst};
}

// What a burst took from the program comes to light when it is over.
void InstantSamples::pay_for_bursts() {
    process_.answer();
    for (const auto& outcome : process_.outcomes()) {
        const auto new_code = std::clamp(outcome.waited, 0.0, outcome.extra);
        pacer().pay(Cause::stop, Seconds{outcome.late / nanoseconds_a_second});
        pacer().pay(Cause::new_code, Seconds{new_code / nanoseconds_a_second});
        pacer().pay(Cause::slower_code, Seconds{(outcome.extra - new_code) / nanoseconds_a_second});
        pay_for_stops(outcome);
        waited_ += Seconds{outcome.waited / nanoseconds_a_second};
        longer_.push_back(outcome.extra / nanoseconds_a_millisecond);
        if (!outcome.is_complete) continue;
        refused_ = 0;
        const auto calls = static_cast<double>(outcome.calls);
        calls_ = calls_ ? *calls_ + (calls - *calls_) / tuning::bursts_remembered : calls;
    }
}

void InstantSamples::look_after() {
    pay_for_bursts();
    is_work_left_ = work_ahead();
    // Who computes all the time cannot see whether a processor would be idle otherwise.
    next_look_ =
        after(Clock::now(), is_work_left_ ? tuning::rest_from_work : pause_between_looks());
}

// A burst is mostly over soon; but its thread may also sleep in a call for ever.
Seconds InstantSamples::pause_between_looks() const {
    const auto longest =
        is_core_free_ ? tuning::between_looks_at_places : tuning::between_looks_at_others_cost;
    if (!process_.has_open_bursts()) return longest;
    const Seconds open = Clock::now() - last_began_;
    return std::clamp(open, tuning::between_looks_at_bursts, longest);
}

// While the program runs, what it is likely to execute next is translated, starting from where it
// is. Not much at a time, for threads may be waiting for us.
bool InstantSamples::work_ahead() {
    const auto now = Clock::now();
    const Seconds since = now - std::exchange(worked_, now);
    if (now >= next_places_) {
        is_core_free_ = pacer().prices().is_any_core_free();
        next_places_ = after(now, tuning::between_looks_at_places);
        for (const auto place : place_.places.take()) process_.expect(place);
        have_room_in_heap();
    }
    may_cost_ += pacer().own(since) * place_.options.overhead.for_work_ahead();
    if (may_cost_ <= Seconds{0}) return false;
    // A thread that has been answered needs our processor.
    if (!is_core_free_ && now < last_began_ + tuning::longest_attention) return false;
    const auto until = after(
        now, is_core_free_ ? tuning::work_at_a_time : std::min(may_cost_, tuning::work_at_a_time));
    const auto before = machine::computed(CLOCK_THREAD_CPUTIME_ID);
    bool is_more = true;
    while (is_more && Clock::now() < until) is_more = process_.work_ahead();
    may_cost_ -= pacer().pay_for_computing(machine::computed(CLOCK_THREAD_CPUTIME_ID) - before);
    return is_more && is_core_free_;
}

// What whoever waits for the program may see of it.
std::string InstantSamples::account() const {
    if (longer_.empty()) return {};
    auto sorted = longer_;
    std::ranges::sort(sorted);
    return fmt::format(
        "in place a thread took {:.2f} ms longer, besides its stop (median; {:.2f} ms at most)",
        sorted[sorted.size() / 2], sorted.back());
}

// There will be less and less new code.
Seconds InstantSamples::passing_price() const {
    return waited_ / std::max(1.0, static_cast<double>(pacer().samples()));
}

void InstantSamples::end(const std::string& reason) {
    if (place_.tracer.alive())
        process_.let_go(reason);
    else
        process_.process_gone();
    pay_for_bursts();
    process_.keep_translations();
    known_.keep();
}

}  // namespace shadowprof::sampling
