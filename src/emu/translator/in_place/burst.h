// A burst: a stretch of the program that a thread executes in the code cache, in the mode
// `instant`. The thread then goes on in its own code by itself.
//
// Bursts begin at random times, and each is to stand for the program's time around it. So it has to
// be known how long the program takes for what is executed in it; the thread takes longer in the
// cache. It goes through its stream in parts, and notes when each is over (stream_parts.h). What
// the cache adds to a part can be reckoned (Burst::native_time). But at a burst's beginning
// the code cache is in none of the processor's caches, and new code holds it up: of what comes then
// only that is believed which no such disturbance explains.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "emu/translator/in_place/learned.h"
#include "emu/translator/in_place/stream_parts.h"
#include "emu/translator/layout.h"
#include "emu/translator/threads/segment_work.h"

namespace shadowprof::emu::translator {

// What a burst is to cover: instructions, or, if that is given, nanoseconds in the cache.
struct BurstLength {
    std::uint64_t instructions = 0;
    double nanoseconds = 0;
};

// What the bursts of a program have shown, and how fast the clock is that threads read.
class BurstExperience {
  public:
    BurstExperience();

    static std::uint64_t ticks_now();
    double nanoseconds(std::uint64_t from, std::uint64_t to) const;
    std::uint64_t ticks(double nanoseconds) const;
    // Of the program's time, as a rule.
    double of_instruction() const;
    double of_block() const { return of_instruction() * instructions_in(&Work::blocks); }
    double instructions_in_segment() const { return instructions_in(&Work::segments); }
    void learn(const Work& work, double nanoseconds);
    BlocksInUnits& blocks_in_units() { return blocks_in_units_; }  // which windows add to

  private:
    double instructions_in(std::uint64_t Work::*unit) const;
    double ticks_in_nanosecond() const;

    Clock::time_point began_ = Clock::now();
    std::uint64_t began_ticks_ = ticks_now();
    Work work_;
    double nanoseconds_ = 0;
    BlocksInUnits blocks_in_units_{};
};

class Burst {
  public:
    Burst(BurstLength length, BurstExperience& experience)
        : length_(length), experience_(&experience) {}

    // The thread has asked for something, or has left instead.
    void has_asked(const ThreadArea& area);
    // Its thread was let go on just now, to begin.
    void was_let_go() { let_go_at_ = experience_->ticks_now(); }
    // How many nanoseconds later it began.
    double late() const { return late_; }
    // It goes on natively for a while.
    void goes_native() { asked_at_.reset(); }
    // The thread stands still, for a signal or a call that has to be seen.
    void stopped() { ++stops_; }
    std::uint64_t stops() const { return stops_; }
    // It has held up its thread, whoever waits for it; not that it had no processor.
    bool takes_too_long() const;
    // With so much executed in the lean version: how long it goes on, in ticks and in segments.
    std::uint64_t ticks_left() const;
    std::uint64_t segments_left(const Work& done) const;
    bool is_over(const Work& done) const;
    bool is_of_given_time() const { return length_.nanoseconds > 0; }
    // Before it begins, how many blocks it is expected to have.
    double expected_blocks() const;
    void ended(std::span<const Stretch> stretches, const Work& done);

    // For so many nanoseconds the thread had no processor, before it began and by now: that is
    // nobody's fault.
    void had_no_processor(std::uint64_t nanoseconds);
    // The thread does not sleep for this part of its time.
    void is_awake(double part) { awake_ = part; }

    // When it is over: nanoseconds that the program takes for what was executed, in all versions,
    // of which so many instructions were in windows.
    double covers(const Work& done, std::uint64_t in_windows) const;
    // Nanoseconds that the program took longer.
    double extra() const { return std::max(0.0, waited_ + in_cache_ - native_ - displaced_); }
    // … of which for code that was new.
    double waited() const { return waited_; }
    // … by stops that were neither its beginning nor its end.
    double stopped_for() const;
    // System calls that it has made from the cache.
    std::uint64_t calls() const { return calls_; }

  private:
    struct Stay;
    // Of a stretch, nanoseconds; and whether caches were warm by then.
    struct Timed {
        Work work;
        double took;
        bool is_warm;
    };
    double in_kernel(double in_user_mode) const;
    double lean_part_of(const Stay& stay) const;
    double native_time(double in_cache, const Work& work) const;
    double native_time_like(double of_instruction, const Work& work, double lean) const;
    std::vector<Timed> times_of(std::span<const Stretch> stretches) const;
    double of_instruction(const Work& done) const;

    BurstLength length_;
    BurstExperience* experience_;
    // When the thread was in the cache, from one question to the next: ticks.
    struct Stay {
        std::uint64_t from, until;
        double computed;  // nanoseconds, without its calls
    };
    std::vector<Stay> stays_;
    std::uint64_t window_began_ = 0, let_go_at_ = 0;
    std::uint64_t calls_ = 0, stops_ = 0;
    std::optional<std::uint64_t> asked_at_;
    std::optional<std::uint64_t> without_processor_;  // before it began
    std::optional<double> awake_;
    double lean_ = 0, in_cache_ = 0, in_calls_ = 0, native_ = 0, waited_ = 0, displaced_ = 0,
           late_ = 0;  // nanoseconds
    // What tells how fast the program is: executed when caches were warm, and the time natively.
    Work warm_;
    double warm_time_ = 0;
};

struct BurstOutcome {
    double extra = 0, waited = 0, late = 0, stopped = 0;  // nanoseconds, as Burst has them
    std::uint64_t calls = 0, stops = 0;
    bool is_complete = false;  // it was as long as it was to be
};

}  // namespace shadowprof::emu::translator
