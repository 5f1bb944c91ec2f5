// Sampling by bursts: at randomised times a running thread is stopped, looked at for some
// instructions, and released. This is what all kinds of bursts share: when, which thread, and what
// it may cost. How the thread is looked at is the business of the kinds (StepBursts,
// EmulatedBursts).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "inject/fork_site.h"
#include "proc/process_info.h"
#include "sampling/sampling.h"
#include "sampling/schedule/budget.h"
#include "sampling/schedule/overhead_model.h"
#include "sampling/schedule/preemptor.h"

namespace shadowprof::sampling {

class StopSampler : public Sampling {
  public:
    explicit StopSampler(SamplerContext place);

    Clock::time_point next_tick() const override;
    void tick() override;
    bool take(const ptrace::Event& event) override;
    bool is_complete() const override { return has_enough() && !in_progress(); }
    Cost cost() const override { return cost_; }
    std::uint64_t samples() const { return samples_; }
    // Others cost the target so much meanwhile, which comes off the budget.
    void others_cost(Seconds price) { budget_.spent_besides(price); }

  protected:
    // The thread is stopped, in 64-bit code, and free of side effects of having been interrupted.
    // Calls finished(), now or later.
    virtual void begin(ptrace::Thread& thread, const ptrace::Registers& registers) = 0;
    // Of bursts that last: events of their thread, and what to do when one takes too long.
    virtual bool in_progress() const { return false; }
    virtual bool take_own(const ptrace::Event&) { return false; }
    virtual void overdue() {}
    // A burst may begin in it.
    virtual bool is_free(const ptrace::Thread&) const { return true; }
    // It has been asked, and is on its way to its stop.
    virtual void has_asked(const ptrace::Thread&) {}
    // Before a thread is stopped: what takes time and can be done while the target runs. False: not
    // now.
    virtual bool prepare() { return true; }
    // There is a fork site now. False, at this moment or for good, if that is impossible.
    bool found(ptrace::Thread& thread);
    // … for good; else empty.
    const std::string& why_no_nursery() const { return why_no_nursery_; }

    trace::TraceStart next_sample();
    // On average exactly that; what is left of whole numbers is left to chance.
    std::uint32_t whole(double weight);
    // The thread, held for so long in all, has been let go.
    void finished(Seconds held);
    // A sample's thread was held once more, for so long, and has been let go.
    void held_again(Seconds held);
    // What the sample costs besides.
    void pay(OverheadModel::Estimate<Seconds> price);
    void pay(Seconds price) { pay(OverheadModel::Estimate<Seconds>{price, price}); }
    // What sampling costs once, however many samples there are.
    void pay_once(Seconds held);
    Seconds affordable_wait() const { return budget_.affordable_wait(); }
    // … and until what was overdrawn is paid back.
    Seconds mean_wait() const { return budget_.mean_wait(); }
    // … and until a sample may be tried that may turn out to cost so much.
    Seconds wait_before_risk(Seconds risk) const { return budget_.wait_before_risk(risk); }
    // Of the sample that begins.
    Seconds stands_for() const { return budget_.stands_for(waited_); }
    // So long, or, by the budget, until so many times the mean time between samples is over.
    using Wait = std::variant<Seconds, Budget::Draw>;
    // When nothing else is to be done before that.
    void schedule(Wait wait);
    void schedule_next() { schedule(budget_.draw(samples_ == 0)); }
    OverheadModel& prices() { return price_; }
    const OverheadModel& prices() const { return price_; }
    // The fork site is taken out of the program again.
    void leave_no_trace();
    // Events go to somebody else from now on.
    void forget_asked() { asked_.clear(); }

    // A thread that sleeps in a system call during its burst is let go after this.
    static constexpr Seconds patience{0.1};

    SamplerContext place_;
    // For those who have threads fork; and for calls that were broken off half-way, once there was
    // one.
    std::unique_ptr<inject::ForkSite> fork_site_;

  private:
    // A thread that is asked to stop must first get a core. Where many wait for one, that takes
    // many times as long as the budget lets pass between samples: so others are asked meanwhile.
    static constexpr std::size_t most_asked = 16;
    // Preparing takes a processor for a while. Where each of them has work that is somebody's whom
    // the program waits for, say, and we would find it asleep: so things may first take their usual
    // course again.
    static constexpr Seconds rest{0.002};
    // A thread that is not displaced may be on its way to sleep when it is asked. Where there is no
    // displacing it, it is asked all the same.
    static constexpr int most_missed = 4;
    // By how much later than a thread that only waits for the moment we are there, usually, and
    // ready to ask.
    static constexpr Seconds our_wake_up{110e-6};

    // Those that are left out for each that is taken, and that one.
    double samples_in_one() const;
    Seconds time_between_samples() const;
    std::uint32_t weight_of_next() { return whole(samples_in_one()); }
    // Of one of which no sample comes.
    Seconds price_of_stop_now();
    bool has_enough() const;
    bool may_begin();
    void get_ready();
    void aim();
    void ask();
    struct Running {
        ptrace::Thread* thread = nullptr;
        std::optional<int> processor;  // of that, unless it has gone to sleep
    };
    Running running_thread();
    void use_stop(ptrace::Thread& thread, Clock::time_point stopped);
    // True if it was let go on for that.
    bool stops_again_to_finish(const ptrace::Event& event);
    // Of a thread that is stopped behind a system call, which that may have broken off half-way:
    // true if there is a rest, which it makes when it is let go on.
    bool finish_call(ptrace::Thread& thread);
    bool make_rest(ptrace::Thread& thread, const inject::RestOfCall& undone);

    // One is sent beforehand. Who has just been somewhere would not displace anyone so soon again.
    std::array<Preemptor, 2> preemptors_;
    OverheadModel price_;
    Budget budget_;
    Clock::time_point scheduled_ = Clock::now();
    Seconds waited_{0};  // for the sample that begins
    Wait wait_;          // since then
    bool is_prepared_ = false;
    std::string why_no_nursery_;
    pid_t chosen_ = 0;
    int missed_ = 0;  // so many times
    proc::ThreadStatWatch stats_;
    struct Asked {
        Clock::time_point when;
        Seconds displaced;  // before
    };
    std::map<ptrace::Thread*, Asked> asked_;  // to stop, and have not yet
    std::uint64_t samples_ = 0;
    Clock::time_point passed_;  // the last of these stops
    Cost cost_;
};

}  // namespace shadowprof::sampling
