// The queue between engines and the digester. It is bounded: an engine that is too fast waits. And
// the buffers of what was read go back to the engines, for they are large.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "languages/interpreter.h"
#include "proc/maps.h"
#include "profile/common/clock_look.h"
#include "profile/common/hotlists.h"
#include "profile/request/reads_requests.h"
#include "ptrace/call_stack.h"
#include "sampling/chapter.h"
#include "sampling/clock/merged_stack.h"
#include "trace/trace.h"

namespace shadowprof::sampling {

struct BeginOfTrace {
    trace::TraceStart start;
    std::optional<ptrace::StackSnapshot> stack;  // with the maps it is to be unwound with
    std::shared_ptr<const proc::Maps> maps;
};
// A look by the clock: the thread's stack, if it has one to be unwound; or, if it sleeps, that it
// is where it was at the last look.
struct StackLook {
    profile::ClockLook facts;
    trace::RequestSight request;
    std::optional<ptrace::StackSnapshot> stack;
    // What an interpreter had it execute at that moment, and who that is.
    std::optional<languages::Glance> glance;
    std::vector<languages::Frame> functions;
    pid_t runner = 0, sleeper = 0;  // the thread, by what it was seen doing
    bool is_where_it_was = false;
};
struct ClockLooks {
    std::vector<StackLook> looks;
    std::shared_ptr<const proc::Maps> maps;  // nothing: the stacks cannot be unwound
    InterpreterFacts interpreter;
};
struct EndOfSample {
    trace::SampleId sample;
};
struct RequestOfSample {
    trace::SampleId sample;
    trace::RequestSight sight;
};
// Of the program's time, that no sample was to stand for.
struct RestOfTime {
    Seconds time;
};
struct ForgetSamples {};
// A copy of this process takes what was seen so far.
struct Snapshot {
    std::function<void(profile::Hotlists)> take;
    std::promise<pid_t> copy;
};
struct NextChapter {
    std::shared_ptr<const Chapter> chapter;
};
using TraceMessage =
    std::variant<BeginOfTrace, trace::TraceChunk, trace::SegmentChunk, trace::TraceEnd, ClockLooks,
                 EndOfSample, RequestOfSample, RestOfTime, ForgetSamples, NextChapter, Snapshot>;

class TraceQueue {
  public:
    TraceQueue();

    // Waits for room.
    void put(TraceMessage message);
    // The next message, which is waited for; nothing once the queue is closed.
    std::optional<TraceMessage> next();
    // The next one that is there, closed or not.
    std::optional<TraceMessage> next_if_any();
    // It was read: there is room for others, and its memory is kept.
    void is_read(TraceMessage& message);
    void close();

    // put() may soon have to wait.
    bool is_nearly_full() const;
    trace::TraceChunk empty_chunk();
    trace::SegmentChunk empty_segments();

  private:
    TraceMessage pop();

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<TraceMessage> queue_;
    std::size_t queued_words_ = 0;
    std::vector<trace::TraceChunk> empty_chunks_;
    std::vector<trace::SegmentChunk> empty_segments_;
    bool closed_ = false;
};

}  // namespace shadowprof::sampling
