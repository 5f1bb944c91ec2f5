// The profilers' thread takes Traces from the engines through a bounded queue, so that the thread
// that does ptrace never waits for a hash table, and has every profiler read each Trace. It runs at
// the lowest priority, unless the target waits for it: the target comes first. Where every core has
// work that may leave it next to no time. So what is still queued at the end, when the target has
// been let go, is read by the thread that calls finish().
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "proc/maps.h"
#include "profile/common/profiler.h"
#include "profile/common/segment_counter.h"
#include "ptrace/call_stack.h"
#include "sampling/chapter.h"
#include "sampling/clock/places_seen.h"
#include "sampling/trace_queue.h"
#include "sampling/tuning.h"
#include "trace/segment.h"
#include "trace/trace.h"

namespace shadowprof::sampling {

struct Coverage {
    std::uint64_t samples = 0;
    std::uint64_t instructions = 0;
    std::uint64_t blocks = 0;
    std::uint64_t weighted_instructions = 0;     // each sample's times its weight
    std::map<std::string, std::uint64_t> ended;  // why Traces ended

    Coverage& operator+=(const Coverage& other);
    // `before` is a part of this.
    Coverage since(const Coverage& before) const;
};

using Profilers = std::vector<std::unique_ptr<profile::Profiler>>;
using MakeProfilers = std::function<Profilers(const trace::BlockTable&)>;
// Takes what was seen in a chapter that is closed.
using TakeHotlists = std::function<void(profile::Hotlists, const Chapter&, const Coverage&)>;

class Digester : public trace::TraceSink {
  public:
    // `in_the_background`: the program does not wait for it, and nobody does until finish(). `make`
    // makes the same profilers again, with nothing in them, for each chapter. Where calls return
    // to, by the stacks that it unwinds, is added to `places`.
    Digester(std::shared_ptr<const Chapter> first, trace::ModuleTable& modules, PlacesSeen& places,
             bool in_the_background, MakeProfilers make, TakeHotlists take = {});
    ~Digester() override;

    void begin(trace::TraceStart start) override;
    // The stack is unwound on this side of the queue, where there is time for it.
    void begin(trace::TraceStart start, ptrace::StackSnapshot stack,
               std::shared_ptr<const proc::Maps> maps);
    void chunk(trace::TraceChunk chunk) override;
    void segments(trace::SegmentChunk chunk) override;
    void end(trace::TraceEnd end) override;
    void end_sample(trace::SampleId sample) override;
    // What a thread of it works for; before begin().
    void see_request(trace::SampleId sample, trace::RequestSight sight);
    // For the latest samples, besides what they stand for.
    void stand_for_rest(Seconds time);
    void look(ClockLooks looks);
    trace::TraceChunk empty_chunk() override;
    trace::SegmentChunk empty_segments() override;

    // Drops all samples of this chapter. They must have ended.
    void forget();

    // Whatever comes now belongs to the next chapter. All samples so far must have ended.
    void begin_chapter(std::shared_ptr<const Chapter> next);

    // Has a copy of this process take what was seen so far, and end then; what is profiled goes on.
    // Gives the copy, or -1 if there can be none. A broken promise: it came too late.
    std::future<pid_t> snapshot(TakeHotlists take);

    // Reads what is queued, then yields what was seen in the last chapter. To be called once, when
    // nothing more will come.
    profile::Hotlists finish(profile::Seen seen);

    // So much is queued that chunk() may soon have to wait for room.
    bool is_behind() const;
    Coverage coverage() const;             // so far
    Coverage coverage_of_chapter() const;  // of that which is being read
    // A part of profiling failed; the rest went on.
    void note_failure(const std::string& why);
    std::optional<std::string> failure() const;                // the first
    trace::CapturePlan captures() const { return captures_; }  // what all profilers want

  private:
    struct OpenTrace {
        trace::SampleId sample{};
        trace::Contents contents{};
        std::optional<trace::SignalFrames> signals;  // at its beginning
        struct Reading {
            std::size_t profiler;  // whose reader it is
            std::unique_ptr<profile::Reader> reader;
        };
        std::vector<Reading> readings;
    };
    struct OpenSample {
        std::unique_ptr<profile::SegmentCounter> counter;  // if it has counts
        bool only_parts = true;                            // another sample counts the whole
        double stands_for = 0, covers = 0;                 // nanoseconds
        std::uint64_t instructions = 0;
    };

    void work();
    void leave_background();
    void read(TraceMessage message);
    void read(BeginOfTrace& begin);
    void read(trace::TraceChunk& chunk);
    void read(trace::SegmentChunk& chunk);
    void read(trace::TraceEnd& end);
    void read(ClockLooks& clock);
    void read(EndOfSample& end);
    void read(RequestOfSample& request);
    void read(RestOfTime& rest);
    void read(ForgetSamples&);
    void read(NextChapter& next);
    void read(Snapshot& snapshot);
    template <class Part>
    bool attempt(Part part);
    template <class Part>
    void have(std::size_t profiler, Part part);
    template <class Part>
    void have_all(Part part);
    profile::Hotlists yield(profile::Seen seen);
    void open_chapter(std::shared_ptr<const Chapter> chapter);
    void drain(trace::SampleId id, OpenSample& sample);
    // Of one that has ended: it gets its weight.
    void settle(trace::SampleId sample);
    void settle_all();
    // Returns its weight.
    std::uint64_t close(trace::SampleId sample);
    void cover(OpenSample& sample, std::uint64_t blocks, std::uint64_t instructions);
    std::uint64_t weigh(const OpenSample& sample);

    MakeProfilers make_;
    TakeHotlists take_;
    trace::ModuleTable& modules_;
    PlacesSeen& places_;
    // The chapter that is being read, and its profilers.
    std::shared_ptr<const Chapter> chapter_;
    Profilers profilers_;
    std::vector<bool> has_failed_;                    // by profiler
    std::unique_ptr<profile::PathFacts> path_facts_;  // of all counters
    trace::CapturePlan captures_;
    std::map<trace::TraceId, OpenTrace> open_;
    std::map<trace::SampleId, OpenSample> samples_;
    std::deque<trace::SampleId> ended_;                       // that may have to stand for more
    std::map<pid_t, std::vector<trace::Location>> sleepers_;  // their stacks, at the last look
    // Counters are kept, since what they have learnt serves the next sample, too.
    std::vector<std::unique_ptr<profile::SegmentCounter>> spare_counters_;
    // Of all samples of which it is known how long the program takes for them.
    double covered_ = 0, instructions_covered_ = 0;
    std::deque<double> covers_of_late_{tuning::usually_covered};
    double left_over_ = 0;  // of what samples were to stand for
    std::chrono::steady_clock::time_point trimmed_ = std::chrono::steady_clock::now();

    TraceQueue queue_;
    mutable std::mutex mutex_;  // of the following
    Coverage coverage_;
    Coverage coverage_before_;  // this chapter
    std::optional<std::string> failure_;
    std::atomic<pid_t> in_background_{0};  // the worker, if it has the lowest priority
    std::thread worker_;
};

}  // namespace shadowprof::sampling
