// Samples that replicas take: a thread is stopped for as long as it takes to have it fork a
// replica, and goes on. The replica shows what the program does next (replicas.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "sampling/kinds/input_recorder.h"
#include "sampling/kinds/replica_sizing.h"
#include "sampling/kinds/replicas.h"
#include "sampling/sampling.h"
#include "sampling/sandbox/file_table_snapshot.h"
#include "sampling/schedule/sample_kind.h"

namespace shadowprof::sampling {

class OtherThreads;

class ReplicaSamples : public SampleKind {
  public:
    // Whether a replica is told what its original is told, once replicas end for want of it.
    enum class Input : bool { ends, is_told };
    ReplicaSamples(SamplerContext place, std::shared_ptr<Pacer> pacer, Input input = Input::ends);
    ~ReplicaSamples() override;

    const char* name() const override { return "replica"; }

    bool prepare() override;
    bool may_begin_behind_call() const override;
    void was_behind_call() override;
    bool may_begin_in(const ptrace::Thread& thread) const override {
        return !recorder_.records(thread);
    }
    bool take(const ptrace::Event& event) override;
    void has_asked(const ptrace::Thread& thread) override;
    void begin(ptrace::Thread& thread, const ptrace::Registers& registers) override;
    void program_is_new() override;
    Clock::time_point next_look() const override { return next_look_; }
    void look_after() override;
    bool has_open_samples() const override { return replicas_ && replicas_->alive() > 0; }
    void end(const std::string& reason) override;
    Cost cost() const override;
    std::string account() const override;

    Seconds risk_of_next() const override { return place_.host.risk_of_fork(); }
    Seconds passing_price() const override;
    const char* what_is_dear() const override { return "forking it, or tracing it at all,"; }
    void pause(Clock::time_point until) override;
    bool is_biased() const override { return is_biased_; }
    std::string what_others_lack() const override;

    // How many samples ended at a call that replicas cannot make, say.
    unsigned ended_early() const { return ended_early_; }

  private:
    static bool has_forked(const inject::ForkSite& site, const inject::PendingReplica& replica);
    std::size_t others_computing(const OtherThreads& others) const;
    bool has_all_threads() const;
    bool can_have_replicas(ptrace::Thread& thread);
    void is_refused(const std::optional<inject::Obstacle>& obstacle);
    void count_living(Clock::time_point now);
    void pay_for_copies();
    void learn_from(const Replicas::Outcome& outcome, Clock::time_point now);
    void await_samples();
    // There can be no more replicas, as things were at the last look.
    bool is_full(Clock::time_point now) const;
    void learn_of_input(const Replicas::Outcome& outcome);

    SamplerContext place_;
    std::size_t most_at_once_;
    std::unique_ptr<Replicas> replicas_;  // in the fork site
    FileTableWatch watch_;
    ReplicaSizing sizing_;
    InputRecorder recorder_;
    bool may_be_told_, is_told_ = false;
    unsigned told_in_vain_ = 0;    // replicas, one after the other
    unsigned refused_ = 0;         // behind calls, since the last fork
    std::optional<double> calls_;  // that a replica passes, of late
    Clock::time_point last_told_{};
    std::uint64_t calls_told_ = 0, replicas_told_ = 0;
    bool is_biased_ = false;
    std::uint64_t forks_ = 0;
    // What they were worth, and cost.
    std::uint64_t instructions_ = 0;
    Seconds computed_{0}, paid_for_computing_{0}, copies_since_fork_{0};
    unsigned failures_ = 0, refusals_ = 0;  // one after the other
    unsigned ended_early_ = 0;
    std::size_t threads_taken_ = 0, threads_missing_ = 0;  // besides those that forked
    // How many live, and have lived on average.
    std::size_t alive_ = 0;
    double alive_seconds_ = 0;
    Clock::time_point began_ = Clock::now();
    Clock::time_point paused_until_ = began_;
    Clock::time_point counted_until_ = began_;
    Clock::time_point next_look_ = Clock::time_point::max();
};

}  // namespace shadowprof::sampling
