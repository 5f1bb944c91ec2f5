// The interface of profile types, built-in and user-made alike: say what must be captured, read
// Traces, give a hotlist.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "profile/common/clock_look.h"
#include "profile/common/counts.h"
#include "profile/common/hotlists.h"
#include "trace/segment.h"
#include "trace/trace.h"

namespace shadowprof::profile {

// Tells functions apart without knowing how (symbols are a matter of higher floors).
class FunctionMap : public trace::ArgumentChoice {
  public:
    // The entry of the function that holds the location; the location itself if none is known.
    virtual Location function_of(Location location) = 0;
    // What is told of where a thread was: the same, or the very line, where an interpreter executes
    // the function and no sample tells more of it.
    virtual Location place_to_tell(Location location) { return function_of(location); }
    // Functions that begin there, if it will be known what their parameters are.
    bool wants_arguments_at(const Location&) const override { return false; }
};

// What the name of a place is of.
enum class NameOf : std::uint8_t { function, file, module };

struct PlaceName {
    std::string function = {};  // empty if it is not known
    std::uint64_t offset = 0;   // in it
    std::string image = {};     // the path of its file
};

// Tells whether a place is in a function, source file or module whose name fits a glob. For any
// thread.
class PlaceNames {
  public:
    virtual ~PlaceNames() = default;
    virtual bool fits(NameOf what, const std::string& glob, const Location& place) = 0;
    virtual PlaceName name_of(const Location& place) = 0;
};

// Reads one Trace: one thread of one sample. Destroyed when the Trace has ended. Traces with
// Contents::counts have segments in place of blocks, which only those read that need their order:
// see Profiler::count. Those of accesses and timings are read by profilers that capture latency,
// and by no others.
class Reader {
  public:
    virtual ~Reader() = default;
    virtual void digest(const trace::TraceChunk& chunk) = 0;
    // Of Traces with Contents::counts, if its profiler reads segments.
    virtual void digest(const trace::SegmentChunk&, const trace::SegmentTable&) {}
    virtual void finish(const trace::TraceEnd& end) = 0;
};

// Where all there is to read is known when the Trace begins.
class NothingToRead : public Reader {
  public:
    void digest(const trace::TraceChunk&) override {}
    void finish(const trace::TraceEnd&) override {}
};

class Profiler {
  public:
    virtual ~Profiler() = default;
    virtual std::string_view name() const = 0;
    virtual trace::CapturePlan captures() const = 0;
    // Whether it reads all that was executed in order, also where it comes without values.
    virtual bool reads_segments() const { return false; }
    virtual std::unique_ptr<Reader> open(const trace::TraceStart& start) = 0;
    // What threads of an open sample did, counted instead of read (Contents::counts). Given to
    // every profiler, also to those that capture something.
    virtual void count(trace::SampleId, const Counts&) {}
    // What was seen between samples, without any. Whoever reads it says so, and it outlives samples
    // that are dropped.
    virtual bool reads_clock() const { return false; }
    virtual void look(const ClockLook&) {}
    // All Traces of the sample have been read: fold it into the statistics. What was executed in it
    // counts so often.
    virtual void end_sample(trace::SampleId sample, std::uint64_t weight) = 0;
    // Adds its hotlist. Called once, at the end.
    virtual void yield(Hotlists& into, Seen seen) = 0;
};

}  // namespace shadowprof::profile
