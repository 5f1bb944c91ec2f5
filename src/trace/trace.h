// A Trace: what one guest thread did in one sample.
//
// A Trace begins with a TraceStart, ends with a TraceEnd, and between them comes in chunks: while
// profilers digest one, the engine fills the next. A chunk says which *blocks* were executed, in
// order. A Block (block.h) is published once in a BlockTable and has a number, so an execution is
// one word. Every block has *slots* (capture.h), which follow from its instructions and from the
// capture plan. Each execution yields one value for each slot, and the chunk has them in the same
// order, without tags: whoever walks through blocks and slots in step finds the value of each.
//
// For an engine that runs code in stretches of several blocks even one word a block is too much. It
// writes down one number for a whole stretch, a *segment* (segment.h), and no values; what it
// records besides is another Trace of the same sample (see Contents).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "trace/block.h"
#include "trace/location.h"
#include "trace/signal_frames.h"

namespace shadowprof::trace {

// Numbered from 0 in the order in which samples were begun. In whole-program modes all threads
// belong to one sample.
enum class SampleId : std::uint32_t {};
enum class TraceId : std::uint32_t {};  // one thread of one sample

// What comes between a Trace's beginning and its end. The Traces of a run are either all
// `everything`, or they are `counts` together with the other kinds, which cover parts of the same
// execution.
enum class Contents : std::uint8_t {
    everything,  // TraceChunks: blocks, and the values captured in them
    counts,      // SegmentChunks: everything that ran, without values
    // TraceChunks of a part that a counts-Trace has as well:
    values,    // with the values of the blocks' slots
    accesses,  // with the addresses of the blocks' accesses in place of values
    timings,   // with loads that were timed, and no blocks
};

// An execution of a load, picked at random.
struct TimedLoad {
    BlockId block{};
    std::uint32_t access = 0;  // index among the block's accesses
    std::uint32_t ticks = 0;   // of the time stamp counter, including the measurement itself
    std::uint64_t address = 0;
};

// What is so of a thread, and not of its code. Below 0: not known, or not asked for.
struct ThreadState {
    std::int32_t tid = -1;
    std::int32_t processor = -1;   // that it was on
    std::int32_t scheduling = -1;  // SCHED_OTHER, …
    bool operator==(const ThreadState&) const = default;
};

// Known when a Trace begins.
struct TraceStart {
    TraceId trace{};
    SampleId sample{};
    Contents contents = Contents::everything;
    // Other threads may take part in the sample, at the same time.
    bool has_company = false;
    // The sample stands for so much of the time that all threads of the program compute; 0: for
    // nothing but itself. See TraceEnd::covers.
    double stands_for = 0;  // nanoseconds
    // The Trace begins with the thread's own first instruction, so it begins at a path head.
    bool from_thread_start = false;
    std::string thread;  // its name, if it is known
    ThreadState state;
    // The signal handlers that the thread is in, if that is known; or the Trace at whose beginning
    // it was in the same ones.
    std::optional<SignalFrames> signals;
    std::optional<TraceId> signals_as_in;
    // Return addresses, innermost first, if the stack could be unwound; the first entry is the
    // interrupted instruction itself.
    std::vector<Location> call_stack;
};

// Executed blocks in order, and the values of their slots in the same order. A block and its
// values, like a discontinuity and its address, are in the same chunk.
struct TraceChunk {
    TraceId trace{};
    std::vector<BlockId> blocks;
    std::vector<std::uint64_t> values;
    std::vector<TimedLoad> timed_loads;
    // The locations of the addresses of the chunk's discontinuities, in order.
    std::vector<Location> continuation_places;
    std::vector<StackMove> stack_moves;  // at the same discontinuities
    // When the chunk ended, of Traces in which it changes.
    std::optional<ThreadState> state;
};

// See segment.h.
enum class SegmentId : std::uint32_t {};

// Stands in a SegmentChunk where `discontinuity` stands in a TraceChunk.
inline constexpr SegmentId segment_discontinuity{0xffffffff};

// Executed segments in order.
struct SegmentChunk {
    TraceId trace{};
    std::vector<SegmentId> segments;
    // The arguments that their blocks begin with (Block::arguments), in order.
    std::vector<std::uint64_t> arguments;
    // For each discontinuity, in order: where the thread would have gone on.
    struct Continuation {
        Address address;
        Location place;
    };
    std::vector<Continuation> continuations;
    std::optional<ThreadState> state;  // as that of a TraceChunk
};

// Why a Trace ended; `reason` is what the profile counts ("sample size", "exit", "system call
// read", …).
struct TraceEnd {
    TraceId trace{};
    std::string reason;
    Address continuation;  // the next instruction of the thread; 0 if there is none
    Location continuation_place;
    bool thread_exited = false;  // nothing followed: an unfinished path ended here
    // How long the program computes, in the kernel as well, for what the Trace has. So what was
    // executed in a sample counts as often as this, of all its threads, goes into the time that it
    // stands for.
    double covers = 0;  // nanoseconds; 0: not known
};

// Where an engine puts what it saw. Calls for one Trace come in order: begin, chunks, end. Traces
// of different threads of a sample interleave; end_sample comes after the last of them.
class TraceSink {
  public:
    virtual ~TraceSink() = default;
    virtual void begin(TraceStart start) = 0;
    virtual void chunk(TraceChunk chunk) = 0;
    virtual void segments(SegmentChunk chunk) = 0;
    virtual void end(TraceEnd end) = 0;
    virtual void end_sample(SampleId sample) = 0;

    // An empty chunk to be filled, if possible with the memory of one that has been read: new
    // memory comes from the kernel page by page.
    virtual TraceChunk empty_chunk() { return {}; }
    virtual SegmentChunk empty_segments() { return {}; }
};

}  // namespace shadowprof::trace
