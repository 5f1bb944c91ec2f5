// A way of sampling, driven by the run loop of a Session: it is told the time and every event of
// the target, and takes the events that are its own. Everything runs on the tracing thread, so
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
#include "ptrace/tracer.h"
#include "sampling/digester.h"
#include "sampling/options.h"
#include "trace/id_allocator.h"

namespace shadowprof::sampling {

// What profiling cost the target.
struct Cost {
    std::uint64_t stops = 0;
    Seconds stop_time{0};
    Seconds price{0};  // the stops and what comes with them: what the budget counts (price.h)
    std::uint64_t forks = 0;
    std::uint64_t extra_faults = 0;  // of pages that replicas shared
    Seconds extra_cpu{0};            // computed by replicas and by us

    Cost& operator+=(const Cost& other) {
        stops += other.stops;
        stop_time += other.stop_time;
        price += other.price;
        forks += other.forks;
        extra_faults += other.extra_faults;
        extra_cpu += other.extra_cpu;
        return *this;
    }
};

// Mode shadow: when it had no replicas, in all chapters so far.
struct WithoutReplicas {
    Seconds time{0};
    std::string why;         // the last time
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
    const std::atomic<double>& precision;  // of the profile so far (profile/convergence.h)
    WithoutReplicas& without_replicas;
    Random random;
};

class Sampling {
  public:
    virtual ~Sampling() = default;
    // When tick() is due.
    virtual Clock::time_point next_tick() const = 0;
    virtual void tick() = 0;
    // False: not mine, pass it on.
    virtual bool take(const ptrace::Event& event) = 0;
    // The end, of the target or of profiling: ends every open sample and frees every thread.
    virtual void wind_up(const std::string& reason) = 0;
    virtual Cost cost() const = 0;
    // All samples that were asked for are taken.
    virtual bool is_complete() const { return false; }
    // Every instruction of the program was seen.
    virtual bool saw_everything() const { return false; }
    // What the user should know; after wind_up().
    virtual std::vector<std::string> warnings() const { return {}; }
};

}  // namespace shadowprof::sampling
