// Sampling by shadows: a running thread is stopped for as long as it takes to have it fork a
// replica, and goes on. The replica shows what the program does next (replicas.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "inject/fork_site.h"
#include "machine/page_copies.h"
#include "sampling/modes/replicas.h"
#include "sampling/sandbox/file_table_snapshot.h"
#include "sampling/schedule/replica_slowness.h"
#include "sampling/schedule/sample_length.h"
#include "sampling/schedule/stop_sampler.h"

namespace shadowprof::sampling {

class Shadows : public StopSampler {
  public:
    explicit Shadows(SamplerContext place);
    ~Shadows() override;

    Clock::time_point next_tick() const override;
    void tick() override;
    bool take(const ptrace::Event& event) override;
    void wind_up(const std::string& reason) override;
    bool is_complete() const override {
        return StopSampler::is_complete() && replicas_ && replicas_->alive() == 0;
    }
    Cost cost() const override;

    // Why there can be no replicas of this program, once that is known.
    const std::optional<inject::Obstacle>& impossible() const { return impossible_; }
    // It is a matter of what else the machine does.
    bool may_be_possible_later() const { return impossible_ && impossible_->may_pass; }
    // Then it is tried again at that time; replicas that live until then are looked after.
    void pause(Clock::time_point until);
    // Whether it is worth trying; otherwise it is known again why not.
    bool may_resume();
    bool are_any_alive() const { return alive_ > 0; }
    // That is all there is against them.
    bool are_too_dear() const { return are_too_dear_; }
    // What they saw is not of everything alike.
    bool is_biased() const { return is_biased_; }
    // That its samples count for, in each second that they stand for; where none is over yet, or
    // one may be possible later, as many as are usual.
    std::optional<double> instructions_a_second() const;

  private:
    Clock::time_point next_birth() const;
    void has_asked(const ptrace::Thread&) override;
    bool prepare() override;
    void begin(ptrace::Thread& thread, const ptrace::Registers& registers) override;
    bool can_have_replicas(ptrace::Thread& thread);
    emu::translator::TranslatedReplica::Length length_of_next() const;
    double affordable_alive() const;
    std::uint32_t weight_of(const emu::translator::TranslatedReplica::Length& length, Seconds time);
    void is_refused(const std::optional<inject::Obstacle>& obstacle);
    void look_after_replicas();
    void count_living(Clock::time_point now);
    void pay_for_copies();
    void learn_from(const Replicas::Outcome& outcome, Clock::time_point now);
    void give_up_what_does_not_pay();
    bool must_earn_first();
    // Otherwise samples are as long and as frequent as somebody said, whatever they cost.
    bool is_our_choice() const;
    void await_samples();
    // There can be no more replicas, as things were at the last look.
    bool is_full(Clock::time_point now) const;

    std::unique_ptr<Replicas> replicas_;  // in the fork site
    FileTableWatch watch_;
    machine::PageCopies copies_;
    Seconds paid_for_computing_{0};
    Seconds copies_since_birth_{0};
    SampleLength length_;
    std::size_t most_at_once_ = 0;
    std::optional<inject::Obstacle> impossible_;
    bool is_biased_ = false, are_too_dear_ = false;
    std::uint64_t forks_ = 0;
    Seconds replicas_computed_{0};
    std::uint64_t instructions_ = 0, weighted_instructions_ = 0;
    Seconds stood_for_{0};                  // these
    unsigned failures_ = 0, refusals_ = 0;  // one after the other
    // The average number of live replicas.
    double alive_seconds_ = 0;
    ReplicaSlowness slowness_;
    std::size_t alive_ = 0;
    // Since the last birth, while there could be no other.
    Seconds full_{0};
    bool is_earning_ = false;  // what the next may cost
    Clock::time_point began_ = Clock::now();
    Clock::time_point paused_until_ = began_;
    Clock::time_point counted_until_ = began_;
    Clock::time_point next_look_ = Clock::time_point::max();
};

}  // namespace shadowprof::sampling
