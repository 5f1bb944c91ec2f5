// One kind of sample: what is done with a thread that has been stopped for it. The sampler
// (sampler.h) decides when a thread is stopped and which; a kind looks at it, in whatever way, and
// lets it go. Most kinds take samples that are over when the thread is let go; some hold it for
// several events; samples of others live on by themselves.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "inject/fork_conditions.h"
#include "ptrace/tracer.h"
#include "sampling/schedule/pacer.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

class SampleKind {
  public:
    explicit SampleKind(Pacer pacer) : pacer_(std::make_shared<Pacer>(std::move(pacer))) {}
    // Several kinds take turns.
    explicit SampleKind(std::shared_ptr<Pacer> shared) : pacer_(std::move(shared)) {}
    virtual ~SampleKind() = default;
    SampleKind(const SampleKind&) = delete;
    SampleKind& operator=(const SampleKind&) = delete;

    // As users know it.
    virtual const char* name() const = 0;
    // When its samples are taken, and what they cost. Each kind has its own, for kinds differ in
    // price.
    Pacer& pacer() { return *pacer_; }
    const Pacer& pacer() const { return *pacer_; }

    // --- taking samples ---
    // Before a thread is stopped: what takes time and can be done while the target runs. False: not
    // now.
    virtual bool prepare() { return true; }
    virtual bool may_begin_in(const ptrace::Thread&) const { return true; }
    // Whether a sample may begin where a thread comes out of a system call. It was in the kernel
    // when it was asked, and as often as it is, so what is behind calls would be seen too often.
    virtual bool may_begin_behind_call() const { return false; }
    // It might not, and that was where the thread stopped.
    virtual void was_behind_call() {}
    // The thread has been asked, and is on its way to its stop.
    virtual void has_asked(const ptrace::Thread&) {}
    // The thread is stopped, in 64-bit code, and free of side effects of having been interrupted.
    // The kind lets it go, now or later, and then calls pacer().finished().
    virtual void begin(ptrace::Thread& thread, const ptrace::Registers& registers) = 0;
    // Another thread, stopped likewise, takes part in the sample that has begun last.
    virtual bool lets_others_join() const { return false; }
    virtual void join(ptrace::Thread& /*thread*/, const ptrace::Registers& /*registers*/) {}
    // It goes on holding that thread: no other sample begins meanwhile.
    virtual bool is_holding() const { return false; }
    // … for long.
    virtual void is_overdue() {}
    // Events of threads that it holds or waits for. False: not mine.
    virtual bool take(const ptrace::Event&) { return false; }
    // Whenever the tracer has waited: answers threads that have asked for something by memory.
    virtual void answer() {}
    // The process executes another program.
    virtual void program_is_new() {}
    // Samples that live on are looked after at that time.
    virtual Clock::time_point next_look() const { return Clock::time_point::max(); }
    virtual void look_after() {}
    virtual bool has_open_samples() const { return is_holding(); }
    // Ends every open sample and frees every thread.
    virtual void end(const std::string& reason) = 0;
    virtual Cost cost() const { return pacer_->cost(); }

    // --- whether it is the right one for this program ---
    // What the user should know of how samples were taken; or nothing.
    virtual std::string account() const { return {}; }
    // Why no more samples of this kind can be taken, once that is known.
    const std::optional<inject::Obstacle>& obstacle() const { return obstacle_; }
    void give_up(inject::Obstacle obstacle) { obstacle_ = std::move(obstacle); }
    // What the next sample may cost that none has shown yet.
    virtual Seconds risk_of_next() const { return Seconds{0}; }
    // The part of a sample's mean price that will become less by itself.
    virtual Seconds passing_price() const { return Seconds{0}; }
    // What samples cost is known after so many; and whether one that was very dear, or may be,
    // says it at once.
    virtual std::uint64_t enough_to_know() const { return tuning::enough_to_know; }
    virtual bool one_may_be_too_dear() const { return true; }
    // … and then are too dear: what is.
    virtual const char* what_is_dear() const { return "tracing it"; }
    // Others are taken until then; samples that live until then are looked after.
    virtual void pause(Clock::time_point) { obstacle_.reset(); }
    // What its samples saw is not of everything alike, and is to be forgotten.
    virtual bool is_biased() const { return false; }
    // What others cannot show in its stead: advice for the user, or nothing.
    virtual std::string what_others_lack() const { return {}; }

  protected:
    std::optional<inject::Obstacle> obstacle_;

  private:
    std::shared_ptr<Pacer> pacer_;
};

}  // namespace shadowprof::sampling
