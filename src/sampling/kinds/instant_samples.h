// Samples in place: a running thread is stopped once and sent into the code cache, which is in the
// program itself. It executes what it would have executed anyway, its system calls included, and
// after a while goes on in its own code by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/common/known_code.h"
#include "emu/translator/translated_process.h"
#include "sampling/sampling.h"
#include "sampling/schedule/sample_kind.h"

namespace shadowprof::sampling {

class InstantSamples : public SampleKind {
  public:
    InstantSamples(SamplerContext place, std::shared_ptr<Pacer> pacer, std::uint64_t sample_size);

    const char* name() const override { return "instant"; }

    bool prepare() override;
    bool may_begin_in(const ptrace::Thread& thread) const override;
    bool may_begin_behind_call() const override;
    void was_behind_call() override { ++refused_; }
    void has_asked(const ptrace::Thread& thread) override;
    void begin(ptrace::Thread& thread, const ptrace::Registers& registers) override;
    bool lets_others_join() const override { return is_in_company_; }
    void join(ptrace::Thread& thread, const ptrace::Registers& registers) override;
    void answer() override { process_.answer(); }
    bool take(const ptrace::Event& event) override { return process_.take(event); }
    void program_is_new() override {
        last_.reset();
        process_.program_is_new();
    }
    Clock::time_point next_look() const override { return next_look_; }
    void look_after() override;
    bool has_open_samples() const override { return process_.has_open_bursts(); }
    void end(const std::string& reason) override;
    Seconds passing_price() const override;
    std::string account() const override;
    // New code is dear, and there is less and less.
    std::uint64_t enough_to_know() const override { return tuning::bursts_to_know; }
    bool one_may_be_too_dear() const override { return false; }
    const char* what_is_dear() const override { return "translating it, or tracing it at all,"; }

  private:
    // The thread was let go on.
    std::optional<Clock::time_point> prepare_program(ptrace::Thread& thread);
    bool is_still_cold() const;
    bool refuses(ptrace::Thread& thread);
    void give_up_if_abandoned();
    void attend();
    void pay_for_bursts();
    void pay_for_stops(const emu::translator::BurstOutcome& outcome);
    Seconds pause_between_looks() const;
    bool work_ahead();
    emu::translator::BurstLength next_length() const;

    void begin_burst(ptrace::Thread& thread, const ptrace::Registers& registers,
                     const trace::TraceStart& start);

    SamplerContext place_;
    std::uint64_t sample_size_;
    std::optional<trace::TraceStart> last_;  // the sample that others may join
    emu::translator::BurstLength length_of_last_;
    emu::KnownCode known_;
    emu::translator::TranslatedProcess process_;
    unsigned refusals_ = 0;        // one after the other
    unsigned refused_ = 0;         // behind calls, since the last burst
    std::optional<double> calls_;  // that a burst makes, of late
    bool is_in_company_ = false;   // the next sample, or the last
    bool is_work_left_ = false, is_core_free_ = false;
    Clock::time_point began_ = Clock::now();
    Clock::time_point next_places_ = began_, worked_ = began_, last_began_;
    Seconds may_cost_{tuning::credit_for_work_ahead};  // the program: to translate ahead
    Seconds waited_{0};                                // for code that was new
    std::vector<double> longer_;  // milliseconds that the program took for each burst
    Clock::time_point next_look_ = Clock::time_point::max();
};

}  // namespace shadowprof::sampling
