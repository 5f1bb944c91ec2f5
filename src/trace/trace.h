// What one guest thread did in one sample, handed over in chunks: while profilers digest one the
// engine fills the next.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/address.h"
#include "trace/block.h"
#include "trace/location.h"

namespace shadowprof::trace {

// Numbered from 0 in the order in which samples were begun. In whole-program modes all threads
// belong to one sample.
enum class SampleId : std::uint32_t {};
enum class TraceId : std::uint32_t {};  // one thread of one sample

// What comes after a Trace's beginning. The Traces of a run are either all `everything`, or counts
// and parts of it.
enum class Contents : std::uint8_t {
    everything,  // TraceChunks: blocks, and the values captured in them
    counts,      // SegmentChunks: the whole of what ran, without values
    // TraceChunks of a part of what a counts-Trace has, too, to be read for
    values,    // the values of the blocks' slots
    accesses,  // the addresses of the blocks' accesses, in place of values
    timings,   // loads that were timed: no blocks
};

// An execution of a load, picked at random.
struct TimedLoad {
    BlockId block{};
    std::uint32_t access = 0;  // of the block's
    std::uint32_t ticks = 0;   // of the time stamp counter, with what the measuring took
    std::uint64_t address = 0;
};

// Known when a Trace begins.
struct TraceStart {
    TraceId trace{};
    SampleId sample{};
    Contents contents = Contents::everything;
    // So many samples would have been taken instead of this one, had the profile not been well
    // known already: it counts as that many.
    std::uint32_t weight = 1;
    // And what is executed in it so many times: it stands for so much of the program's time.
    std::uint32_t weight_of_counts = 1;
    std::uint64_t weight_in_all() const { return std::uint64_t{weight} * weight_of_counts; }
    // The Trace begins with the thread's own first instruction, so it begins at a path head.
    bool from_thread_start = false;
    // Return addresses, innermost first, if the stack could be unwound; the first entry is the
    // interrupted instruction itself.
    std::vector<Location> call_stack;
};

// Executed blocks in order, and the values of their slots in the same order without tags. A block
// and its values, a discontinuity and its address, are in the same chunk.
struct TraceChunk {
    TraceId trace{};
    std::vector<BlockId> blocks;
    std::vector<std::uint64_t> values;
    std::vector<TimedLoad> timed_loads;
    // Where the addresses of the chunk's discontinuities are, one each, in order.
    std::vector<Location> continuation_places;
};

// See segment.h.
enum class SegmentId : std::uint32_t {};

// Stands in a SegmentChunk where `discontinuity` stands in a TraceChunk.
inline constexpr SegmentId segment_discontinuity{0xffffffff};

// Executed segments in order.
struct SegmentChunk {
    TraceId trace{};
    std::vector<SegmentId> segments;
    // Of the discontinuities, in order: where the thread would have gone on.
    struct Continuation {
        Address address;
        Location place;
    };
    std::vector<Continuation> continuations;
};

// Why a Trace ended; `reason` is what the profile counts ("sample size", "exit", "system call
// read", …).
struct TraceEnd {
    TraceId trace{};
    std::string reason;
    Address continuation;  // the next instruction of the thread; 0 if there is none
    Location continuation_place;
    bool thread_exited = false;  // nothing followed: an unfinished path ended here
};

// Where an engine puts what it saw. Calls for one trace come in order: begin, chunks, end; traces
// of different threads of a sample interleave; end_sample comes after the last of them.
class TraceSink {
  public:
    virtual ~TraceSink() = default;
    virtual void begin(TraceStart start) = 0;
    virtual void chunk(TraceChunk chunk) = 0;
    virtual void segments(SegmentChunk chunk) = 0;
    virtual void end(TraceEnd end) = 0;
    virtual void end_sample(SampleId sample) = 0;

    // To be filled: empty, but with the memory of one that was read, if there is such a one. Memory
    // that is new must be had from the kernel, page by page.
    virtual TraceChunk empty_chunk() { return {}; }
    virtual SegmentChunk empty_segments() { return {}; }
};

}  // namespace shadowprof::trace
