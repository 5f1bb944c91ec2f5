// Samples of two kinds, in place and by replicas: for each sample that kind which tells more for
// what it costs the program.
//
// Both take turns, by one schedule and one budget. So whichever takes it, a sample stands for the
// same time of the program, and their counts can be added. Prices are measured as they are paid,
// and change: code that was new is known later, and memory grows. So a small part of the budget
// goes on to be spent on the kind that seems to be worse.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/random.h"
#include "sampling/kinds/replica_samples.h"
#include "sampling/schedule/sample_kind.h"

namespace shadowprof::sampling {

class BestSamples : public SampleKind {
  public:
    BestSamples(std::shared_ptr<Pacer> pacer, std::unique_ptr<SampleKind> in_place,
                std::unique_ptr<ReplicaSamples> replicas, Random random);

    const char* name() const override { return "sample"; }

    bool prepare() override;
    bool may_begin_behind_call() const override { return next().may_begin_behind_call(); }
    void was_behind_call() override { next().was_behind_call(); }
    bool may_begin_in(const ptrace::Thread& thread) const override;
    void has_asked(const ptrace::Thread& thread) override { next().has_asked(thread); }
    void begin(ptrace::Thread& thread, const ptrace::Registers& registers) override;
    bool lets_others_join() const override { return next().lets_others_join(); }
    void join(ptrace::Thread& thread, const ptrace::Registers& registers) override;
    void answer() override { instants_->answer(); }
    bool take(const ptrace::Event& event) override;
    void program_is_new() override;
    Clock::time_point next_look() const override;
    void look_after() override;
    bool has_open_samples() const override;
    void end(const std::string& reason) override;
    Cost cost() const override { return replicas_->cost(); }

    std::uint64_t enough_to_know() const override { return instants_->enough_to_know(); }
    bool one_may_be_too_dear() const override { return false; }
    Seconds passing_price() const override { return instants_->passing_price(); }
    std::string account() const override;

  private:
    struct Side {
        SampleKind* kind;
        double worth;                          // of a sample, in samples in place
        std::uint64_t samples = 0, taken = 0;  // lately; and in all
        Seconds paid{0};                       // lately
        // What a sample costs; nothing as long as there was none.
        std::optional<Seconds> price() const {
            return samples == 0 ? std::nullopt : std::optional{paid / static_cast<double>(samples)};
        }
    };
    SampleKind& next() const { return *next_->kind; }
    void choose();
    Side& better() { return replicas_are_better() ? by_replicas_ : in_place_; }
    bool replicas_are_better() const;
    template <typename Call>
    void on_account_of(Side& side, const Call& call);

    std::unique_ptr<SampleKind> instants_;
    std::unique_ptr<ReplicaSamples> replicas_;
    Side in_place_, by_replicas_;
    Side* next_;
    Random random_;
};

}  // namespace shadowprof::sampling
