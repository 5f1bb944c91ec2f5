// What a thread in the cache writes down, on its way into Traces: a stream of segments, and from
// time to time, in one of the other versions, a burst of segments with the values or the addresses
// captured in them, or with loads that were timed.
//
// Bursts are runs of units; the lengths between them, in blocks, are random: every execution of a
// block has the same chance. How many blocks a segment has depends on what the code cache has
// learnt, so nothing is measured in segments. Within a burst that times loads the numbers of loads
// between those that are timed are random, and so every execution of a load has the same chance,
// too.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/random.h"
#include "emu/common/guest_code.h"
#include "emu/translator/segment_work.h"
#include "emu/translator/shared_memory.h"
#include "emu/translator/unit.h"
#include "trace/id_allocator.h"
#include "trace/segment.h"
#include "trace/trace.h"

namespace shadowprof::emu::translator {

struct ValueSampling {
    bool captures = false;  // anything: there is a version for values
    double fraction = 0;    // of blocks, executed in that version

    bool wanted() const { return captures && fraction > 0; }
    bool always() const { return captures && fraction >= 1; }
};

struct LoadSampling {
    bool wanted = false;
    bool timed = true;          // the clock can be used; otherwise addresses alone are told
    std::uint64_t warm_up = 0;  // blocks before the first burst that times loads
};

class ThreadRecording {
  public:
    // Where everything goes, the same for all threads of a run.
    struct Place {
        GuestCode& code;
        trace::SegmentTable& segments;
        SegmentWork& work;
        trace::TraceSink& sink;
        trace::IdAllocator& numbers;
        Random& random;
        ValueSampling values;
        LoadSampling loads;
        // A burst is a sample of its own; otherwise it belongs to the thread's.
        bool bursts_are_samples = false;
    };
    // `trace`: the number of the Trace of what ran.
    ThreadRecording(Place place, trace::SampleId sample, trace::TraceId trace);

    // From now on it writes into the slot of this area.
    void begin_stream(SharedMemory& memory, std::uint32_t area);
    // There will be so many blocks, more or less, from now on: as if it began here. Without this it
    // goes on for ever. Nanoseconds of the original's.
    void expect(double blocks, double nanoseconds_of_block = usual_block);
    // Ends the burst that may be under way, and hands over what there is.
    void end_stream();

    Version version() const { return version_; }
    // Of those that interrupt the lean version.
    bool is_in_burst() const { return version_ != Version::lean && !always_values(); }
    // Where to write next, of a thread that is about to enter the cache; and when it has left it.
    std::uint64_t stream() const { return stream_; }
    void left_at(std::uint64_t stream) { stream_ = stream & ~alias; }

    // In versions that write down nothing else.
    struct Executed {
        std::span<const trace::SegmentId> segments;  // until the next call
        Work work;
    };
    // Takes over what was written since the last time.
    Executed read();
    // The same, but it becomes no part of the Trace, which has not begun yet.
    Executed skip();
    // Segments may have many more blocks than they had until now.
    void units_are_longer();
    // The slot is full, or the version's time is over: how it goes on, with an empty slot.
    void go_on();
    // … with about so many blocks at most before it asks again, in the lean version.
    void go_on_for(std::uint64_t blocks);
    // … and no burst begins.
    void go_on_lean_for(std::uint64_t blocks);
    // It left a unit in its middle, before this instruction: what it did of it, as blocks.
    void cut(const Unit& unit, std::size_t block, std::size_t instruction);
    void cut_before(const Unit& unit, Address instruction);
    // That was read so far, in the lean version.
    const Work& work() const { return work_; }
    std::uint64_t instructions_in_bursts() const { return instructions_in_bursts_; }
    // It went somewhere else than the code says.
    void discontinuity(Address continuation);
    void flush();

  private:
    static constexpr double usual_block = 1;

    // In one of the versions that are not lean.
    struct Burst {
        Version version{};
        trace::Contents contents{};
        double fraction = 0;        // of blocks
        std::uint64_t length = 0;   // in blocks, about
        std::int64_t units = 0;     // that this one has
        std::uint64_t blocks = 0;   // in the last one, or so far; at first, as if in one before
        std::uint64_t due = 0;      // after so many lean blocks
        std::uint64_t warm_up = 0;  // of which there are so many before, also of those skipped
    };

    bool writes_values() const {
        return version_ == Version::values || version_ == Version::accesses;
    }
    bool always_values() const { return place_.values.always(); }
    Executed look_at_new();
    // So many of the blocks came after it.
    static std::uint64_t warm_up(Burst& burst, std::uint64_t blocks);
    void choose_version();
    std::uint64_t until_burst() const;
    void restart(std::uint64_t blocks);
    std::uint64_t draw_lean_run(const Burst& burst);
    std::uint64_t length_of_values() const;
    void begin_burst(Burst& burst);
    void end_burst();
    void hand_over_burst();
    void read_values();
    void read_block_values(const trace::Block& block, const std::byte*& at);
    void prepare_readings();
    void read_readings();
    std::int64_t draw_loads();

    Place place_;
    trace::SampleId sample_;
    trace::TraceId trace_;
    SharedMemory* memory_ = nullptr;
    std::uint32_t area_ = 0;
    std::uint64_t stream_ = 0;      // where it will write next, while it is outside
    std::uint64_t read_up_to_ = 0;  // of what it has written
    Version version_ = Version::lean;
    double expected_blocks_ = 0, nanoseconds_of_block_ = usual_block;
    double blocks_in_segment_;  // lately
    std::array<Burst, version_count - 1> bursts_;
    trace::SegmentChunk chunk_;
    Burst* burst_ = nullptr;  // under way
    trace::TraceId burst_trace_{};
    trace::SampleId burst_sample_{};
    trace::TraceChunk burst_chunk_;
    Work work_;
    std::uint64_t instructions_in_bursts_ = 0;
    std::uint64_t mean_loads_between_ = 0;
    std::size_t spent_readings_ = most_readings;  // whose intervals are to be drawn again
};

}  // namespace shadowprof::emu::translator
