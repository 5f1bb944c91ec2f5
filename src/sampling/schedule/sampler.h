// Decides when a thread is looked at, which one, by which kind of sample, and what that may cost
// the target.
//
// There is a preferred kind and, in some modes, a stand-in for programs and moments in which the
// preferred one is impossible or too dear. That may pass: where it does the preferred kind is tried
// again after a while, which is longer each time it was in vain. Mode auto does not choose here
// between replicas and samples in place: its preferred kind, kinds/best_samples.h, does.
//
// Everything that the sampler deals with is given to it: the time, the program's threads, the kinds
// and, in their pacers, prices. So it can be tested with a test's own (tests/sampling).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "sampling/options.h"
#include "sampling/sampling.h"
#include "sampling/schedule/sample_kind.h"
#include "sampling/schedule/thread_list.h"
#include "sampling/schedule/thread_stopper.h"
#include "sampling/schedule/time_source.h"

namespace shadowprof::sampling {

class Sampler : public Sampling {
  public:
    struct Collaborators {
        const Options& options;
        std::unique_ptr<ThreadList> threads;
        Random random;
        WithoutPreferredKind& without_preferred;
        // Whoever reads samples has more than enough to do.
        std::function<bool()> is_behind;
        // What samples have shown so far is to be forgotten.
        std::function<void()> forget;
        std::function<void(Seconds)> stand_for_rest;
        // A sample begins in this thread, which is stopped there.
        std::function<void(const ptrace::Thread&, const ptrace::Registers&)> begins =
            [](const auto&, const auto&) {};
        // What others have cost the program so far, which comes off the budget.
        std::function<Seconds()> cost_of_others = [] { return Seconds{0}; };
        TimeSource now = Clock::now;
    };
    using MakeKind = std::function<std::unique_ptr<SampleKind>()>;

    // A stand-in is made anew each time that it is needed; nothing if there is none.
    Sampler(Collaborators with, std::unique_ptr<SampleKind> preferred, MakeKind make_stand_in = {});
    ~Sampler() override;

    Clock::time_point next_tick() const override;
    void tick() override;
    void answer() override;
    bool take(const ptrace::Event& event) override;
    void wind_up(const std::string& reason) override;
    bool is_complete() const override;
    Cost cost() const override;
    std::string account() const override { return preferred_->account(); }
    std::vector<std::string> warnings() const override;

  private:
    SampleKind& kind() const { return stand_in_ ? *stand_in_ : *preferred_; }
    std::uint64_t samples() const;
    bool has_enough() const;
    Clock::time_point next_sample() const;

    // When and whom.
    void act();
    void get_ready();
    bool look_and_ask();
    void ask_others();
    bool take_or_count(const ptrace::Event& event);
    void use_stop(ptrace::Thread& thread);

    // By which kind.
    bool may_choose() const;
    bool must_earn_first();
    void give_up_as_too_dear(std::string why, bool may_pass);
    void give_up_what_does_not_pay();
    void change_kind();
    void begin_stand_in();
    void end_stand_in();
    void end_preferred();
    void pause_preferred();
    void charge_stand_in();
    void charge_others();

    Collaborators with_;
    ThreadStopper stopper_;
    std::unique_ptr<SampleKind> preferred_;
    MakeKind make_stand_in_;
    std::unique_ptr<SampleKind> stand_in_;  // meanwhile, or for good
    bool is_prepared_ = false;
    Seconds attempt_took_{0};     // so far
    Seconds others_cost_{0};      // that is paid for
    bool may_be_joined_ = false;  // the sample has begun that all threads are to take part in
    bool lets_go_ = false;        // did so, between samples

    Clock::time_point began_, stand_in_began_;
    Clock::time_point again_at_ = Clock::time_point::max();
    Seconds pause_;             // the next one
    bool is_too_dear_ = false;  // that is all there is against the preferred kind
    Seconds charged_{0};        // of its cost: what the stand-in need not spare any more
    // Of stand-ins before this one.
    Cost cost_of_stand_ins_;
    std::uint64_t samples_of_stand_ins_ = 0;
    std::uint64_t forgotten_ = 0;  // samples
    std::string advice_;           // for warnings
};

}  // namespace shadowprof::sampling
