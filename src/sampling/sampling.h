// A way of sampling, driven by the run loop of a Session, which hands it the time and every event
// of the target. It takes the events that are its own. Everything runs on the tracing thread, so
// nothing here may wait but wind_up(), which takes care of events meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "emu/common/guest_code.h"
#include "machine/host_charges.h"
#include "ptrace/tracer.h"
#include "sampling/digester.h"
#include "sampling/foothold.h"
#include "sampling/options.h"
#include "sampling/schedule/cost.h"
#include "trace/id_allocator.h"

namespace shadowprof::sampling {

class ProgramClock;
class ProgramRequests;

// When a mode's preferred kind of sample had another stand in for it, in all chapters so far.
struct WithoutPreferredKind {
    Seconds time{0};
    std::string why;         // the last time
    std::string stand_in;    // which kind
    bool has_ended = false;  // once at least
};

// What a way of sampling works with.
struct SamplerContext {
    const Options& options;
    ptrace::Tracer& tracer;
    emu::GuestCode& code;
    Digester& digester;
    trace::BlockTable& blocks;
    trace::ModuleTable& modules;
    trace::SegmentTable& segments;
    trace::IdAllocator& numbers;
    const std::atomic<double>& precision;  // of the profile so far (profile/common/convergence.h)
    WithoutPreferredKind& without_preferred;
    Foothold& foothold;
    machine::HostCharges& host;
    PlacesSeen& places;
    ProgramClock* clock;  // if it is to be run
    ProgramRequests& requests;
    Random random;

    // For a part of it that is to have random numbers of its own.
    SamplerContext fork() {
        auto part = *this;
        part.random = random.fork();
        return part;
    }
};

class Sampling {
  public:
    virtual ~Sampling() = default;
    // When tick() is due.
    virtual Clock::time_point next_tick() const = 0;
    virtual void tick() = 0;
    // Whenever the tracer has waited: answers threads that have asked for something by memory.
    virtual void answer() {}
    // Does a little of what will be wanted later, while nothing else is to be done. False: there is
    // nothing.
    virtual bool work_ahead() { return false; }
    // False: not mine, pass it on.
    virtual bool take(const ptrace::Event& event) = 0;
    // The end, of the target or of profiling: ends every open sample and frees every thread.
    virtual void wind_up(const std::string& reason) = 0;
    virtual Cost cost() const = 0;
    // All samples that were asked for are taken.
    virtual bool is_complete() const { return false; }
    // Every instruction of the program was seen.
    virtual bool saw_everything() const { return false; }
    // Which kinds of samples were taken, and why, where there was a choice; after wind_up().
    virtual std::string account() const { return {}; }
    // What the user should know; after wind_up().
    virtual std::vector<std::string> warnings() const { return {}; }
};

}  // namespace shadowprof::sampling
