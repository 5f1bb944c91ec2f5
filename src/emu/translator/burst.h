// A burst: a stretch of the program that a thread executes in the code cache, in the mode
// `instant`. The thread then goes on in its own code by itself.
//
// Bursts begin at random times, so all of them are to cover the same time of the program: then what
// is executed in them is in proportion to what the program executes (see native_time.h). A thread
// takes longer in the cache than in its own code. So when the first part of a burst is over it is
// estimated how long that would have taken natively, and how many blocks fit into the rest. The
// thread leaves after these, when it would ask next.
//
// The first part pays for the code cache's being in no cache of the processor. So it is the rest
// that tells how fast the program is, unless the first part took so long that this is nothing. The
// rest pays, too: how much is shown by bursts that are many times as long, of which there are a
// few.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "emu/translator/layout.h"
#include "emu/translator/learned.h"
#include "emu/translator/segment_work.h"

namespace shadowprof::emu::translator {

// What a burst is to cover: instructions, or, if that is given, nanoseconds of the program's time.
struct BurstLength {
    std::uint64_t instructions = 0;
    double nanoseconds = 0;
    // How long others are, if this one is to show how much those are disturbed; else 0.
    double of_others = 0;
};

// What the bursts of a program have shown, and how fast the clock is that threads read.
class BurstExperience {
  public:
    BurstExperience();

    double nanoseconds(std::uint64_t from, std::uint64_t to) const;
    // Of the program's time, for a block.
    double of_block() const { return of_block_; }
    void learn_of_block(double nanoseconds);
    bool has_learned() const { return has_learned_; }
    // What the rest of a burst of the usual length takes longer than natively, besides what is
    // written down.
    double disturbance_of_rest() const { return disturbance_of_rest_.value().value_or(0); }
    void learn_disturbance_of_rest(double nanoseconds) { disturbance_of_rest_.learn(nanoseconds); }
    double blocks_in_segment() const { return blocks_in_segment_; }
    void learn_blocks_in_segment(double blocks) { blocks_in_segment_ = blocks; }
    BlocksInUnits& blocks_in_units() { return blocks_in_units_; }  // which windows add to

  private:
    static std::uint64_t ticks_now();

    Clock::time_point began_ = Clock::now();
    std::uint64_t began_ticks_ = ticks_now();
    double of_block_, blocks_in_segment_;
    Learned disturbance_of_rest_;
    BlocksInUnits blocks_in_units_{};
    bool has_learned_ = false;
};

class Burst {
  public:
    Burst(BurstLength length, BurstExperience& experience)
        : length_(length), experience_(&experience), of_block_(experience.of_block()) {}

    // The thread has asked for something, or has left instead. `counts`: it ran in the lean
    // version.
    void has_asked(const ThreadArea& area, bool counts);
    // It goes on natively for a while.
    void goes_native() { asked_at_.reset(); }
    // The thread stands still, for a signal or a call that has to be seen.
    void stopped() { ++stops_; }
    std::uint64_t stops() const { return stops_; }
    // It has held up its thread, whoever waits for it.
    bool takes_too_long() const;
    // With so much executed in the lean version, how many blocks it is to go on for; 0: it is over.
    std::uint64_t blocks_left(const Work& done);
    bool is_over() const { return is_over_; }
    // … which is the rest, as far as is known.
    bool is_last_part() const { return is_last_part_; }
    // Before it begins, how many blocks it is expected to have.
    double expected_blocks() const { return blocks_in(length_.nanoseconds, 0, 0); }
    void ended(const Work& done);

    // For so many nanoseconds the thread had no processor, before it began and when it is over:
    // that is nobody's fault.
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
    // System calls that it has made from the cache.
    std::uint64_t calls() const { return calls_; }

  private:
    void measure(const Work& done);
    double in_kernel(double in_user_mode) const;
    double disturbance() const;
    bool says_much() const;
    // In a burst of so many nanoseconds.
    double blocks_in(double nanoseconds, double blocks, double instructions) const;
    void show_disturbance();

    BurstLength length_;
    BurstExperience* experience_;
    double of_block_;
    bool is_last_part_ = false, is_over_ = false;
    // What was executed, and how long it took, up to where it asked.
    struct Part {
        Work work;
        double lean = 0;  // nanoseconds
    };
    Part first_part_;
    Part as_others_;  // with which others are over, if they are shorter
    std::uint64_t calls_ = 0, stops_ = 0;
    std::optional<std::uint64_t> asked_at_;
    std::optional<std::uint64_t> without_processor_;  // before it began
    std::optional<double> awake_;
    double lean_ = 0, in_cache_ = 0, in_calls_ = 0, native_ = 0, waited_ = 0,
           displaced_ = 0;  // nanoseconds
};

struct BurstOutcome {
    double extra = 0, waited = 0;  // nanoseconds, as Burst has them
    std::uint64_t calls = 0, stops = 0;
    bool is_complete = false;  // it was as long as it was to be
};

}  // namespace shadowprof::emu::translator
