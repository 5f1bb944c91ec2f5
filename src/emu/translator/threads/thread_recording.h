// What a thread in the cache writes down, on its way into Traces: a stream of segments, and from
// time to time a capture window, in which it runs in another version of the code: one that also
// records the values or the addresses captured in the segments, or times loads.
//
// A window is a run of units. The lengths between windows, in blocks, are random, so every
// execution of a block has the same chance. How many blocks a segment has depends on what the code
// cache has learnt, so nothing is measured in segments. Within a window that times loads, the
// numbers of loads from one that is timed to the next are random, and so every execution of a load
// has the same chance, too.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/random.h"
#include "emu/common/guest_code.h"
#include "emu/translator/in_place/learned.h"
#include "emu/translator/in_place/stream_parts.h"
#include "emu/translator/shared_memory.h"
#include "emu/translator/threads/segment_work.h"
#include "emu/translator/unit.h"
#include "trace/id_allocator.h"
#include "trace/segment.h"
#include "trace/trace.h"

namespace shadowprof::emu::translator {

struct ValueSampling {
    bool captures = false;  // anything at all, so that there is a version for values
    double fraction = 0;    // of blocks that are executed in that version

    bool wanted() const { return captures && fraction > 0; }
    bool always() const { return captures && fraction >= 1; }
};

struct LoadSampling {
    bool wanted = false;
    bool timed = true;          // the clock can be used; otherwise only addresses are recorded
    std::uint64_t warm_up = 0;  // blocks before the first window that times loads
};

class ThreadRecording {
  public:
    // Where everything goes; the same for all threads of a run.
    struct Place {
        GuestCode& code;
        trace::SegmentTable& segments;
        SegmentWork& work;
        trace::TraceSink& sink;
        trace::IdAllocator& numbers;
        Random& random;
        ValueSampling values;
        LoadSampling loads;
        // A window is a sample of its own; otherwise it belongs to the thread's sample.
        bool windows_are_samples = false;
        // Where a thread runs and how it is scheduled now; null: not asked for, or the same all the
        // time.
        trace::ThreadState (*state_now)(pid_t pid, pid_t tid) = nullptr;
    };
    // `trace` is the Trace of the segments.
    ThreadRecording(Place place, trace::SampleId sample, trace::TraceId trace);

    // What windows say of the thread is what the Trace of the segments says.
    void belongs_to(const trace::TraceStart& start);
    // From now on the thread writes into the slot of this area.
    void begin_stream(SharedMemory& memory, std::uint32_t area);
    // There will be about so many blocks from now on, as if the stream began here. Without this
    // call it is taken to go on for ever. A block takes so many nanoseconds of the original's time.
    void expect(double blocks, double nanoseconds_of_block = usual_block);
    // In a burst, which has just begun its stream: the thread goes through parts of it by itself,
    // for about so many segments, and then has one of the windows that are wanted, of a random
    // version; in company of addresses. How long that is depends on what others have shown, and it
    // adds to that.
    void drive(std::uint64_t segments, BlocksInUnits& shown);
    // It has asked, and gets more parts; the window is over.
    void drive_on(std::uint64_t segments);
    // Whether it may have come to its window since the last time: to be called before anything else
    // when it has asked, left or stopped.
    void look_whether_in_window();
    Driven driven() const {
        return !parts_ ? Driven::asks : window_ ? Driven::through_window : Driven::through_parts;
    }
    // What was read of parts that are over.
    const std::vector<Stretch>& stretches() const { return stretches_; }
    // Ends the window that may be under way, and hands over what there is.
    void end_stream();

    Version version() const { return version_; }
    // Whether it is in a window that interrupts the lean version.
    bool is_in_window() const { return version_ != Version::lean && !always_values(); }
    // Where to write next, of a thread that is about to enter the cache; and when it has left it.
    std::uint64_t stream() const { return stream_; }
    void left_at(std::uint64_t stream);
    // The program wrote over what the thread had written down, or over its area: nothing more is
    // read of it. What was written since the last read is not part of the Trace, nor what was only
    // set aside.
    bool is_spoilt() const { return is_spoilt_; }
    void spoil();

    // Empty in versions that write down values as well.
    struct Executed {
        std::span<const trace::SegmentId> segments;  // until the next call
        Work work;
    };
    // Takes over what was written since the last call.
    Executed read();
    // The same in parts, but it is only copied, because the thread waits. The next call does the
    // rest.
    void set_aside();
    // As `read`, but it does not become part of the Trace, which has not begun yet.
    Executed skip();
    // Segments may have many more blocks than they had until now.
    void units_are_longer();
    // The slot is full, or the window is over: chooses how the thread goes on, with an empty slot.
    void go_on();
    // The same, with about so many blocks at most before it asks again, in the lean version.
    void go_on_for(std::uint64_t blocks);
    // The same, and no window begins.
    void go_on_lean_for(std::uint64_t blocks);
    // The thread left a unit in its middle, before this instruction: records the part that it
    // executed, as blocks.
    void cut(const Unit& unit, std::size_t block, std::size_t instruction);
    void cut_before(const Unit& unit, Address instruction);
    // What was read so far, in the lean version.
    const Work& work() const { return work_; }
    std::uint64_t instructions_in_windows() const { return instructions_in_windows_; }
    // The thread went on elsewhere than the code says: at a handler, say.
    void discontinuity(Address continuation, const trace::StackMove& move);
    void flush();

  private:
    static constexpr double usual_block = 1;

    // The windows of one version: their lengths, and when the next one is due.
    struct CaptureWindow {
        Version version{};
        trace::Contents contents{};
        double fraction = 0;        // of all blocks
        std::uint64_t length = 0;   // in blocks, about
        std::int64_t units = 0;     // in the current one
        std::uint64_t blocks = 0;   // in the last one, or so far; at first an assumption
        std::uint64_t due = 0;      // after so many blocks in the lean version
        std::uint64_t warm_up = 0;  // and after so many before those, skipped ones included
    };

    bool writes_values() const {
        return version_ == Version::values || version_ == Version::accesses;
    }
    bool always_values() const { return place_.values.always(); }
    bool copy_new(trace::SegmentChunk& append_to, Executed& executed);
    bool copy(std::uint64_t from, std::uint64_t until, trace::SegmentChunk& append_to);
    bool copy_parts(trace::SegmentChunk& append_to);
    std::optional<Work> count_parts(std::span<const trace::SegmentId> copied);
    struct Length {
        std::size_t segments, arguments;
    };
    Length counted_in(const trace::SegmentChunk& chunk) const;
    void spoil_behind(const Length& sound, trace::SegmentChunk& chunk);
    void flush_if_long();
    bool copy_with_arguments(std::uint64_t from, std::uint64_t until,
                             trace::SegmentChunk& append_to);
    void lay_out_parts(std::uint64_t segments);
    void prepare_only_window();
    bool is_seen_to_end() const;
    // Returns how many of the blocks came after the warming up.
    static std::uint64_t warm_up(CaptureWindow& window, std::uint64_t blocks);
    void choose_version();
    std::uint64_t until_window() const;
    void restart(std::uint64_t blocks);
    std::uint64_t draw_lean_run(const CaptureWindow& window);
    std::uint64_t length_of_values() const;
    std::int64_t most_units_left(const CaptureWindow& window) const;
    std::uint64_t stream_with_room_for(std::uint64_t segments) const;
    double blocks_in_units_of(const CaptureWindow& window) const;
    void learn_blocks_in_units();
    void prepare_window(CaptureWindow& window);
    void begin_window(CaptureWindow& window);
    void end_window();
    void hand_over_window();
    std::optional<trace::ThreadState> state_now() const;
    void read_values();
    void take_values();
    bool records_arguments() const { return place_.code.plan().functions() != nullptr; }
    // Appends the block, with the values at the beginning of `stored`, which then begins behind
    // them. False if there are not so many.
    bool read_block_values(const trace::Block& block, std::span<const std::byte>& stored);
    bool read_unit_values(std::span<const std::byte>& stored);
    bool read_values_of(std::span<const trace::BlockId> blocks);
    void prepare_readings();
    void read_readings();
    bool read_reading(std::size_t index);
    std::int64_t draw_loads();

    Place place_;
    trace::TraceStart start_;  // of windows
    trace::SampleId sample_;
    trace::TraceId trace_;
    SharedMemory* memory_ = nullptr;
    std::uint32_t area_ = 0;
    std::uint64_t stream_ = 0;      // where the thread will write next, while it is outside
    std::uint64_t read_up_to_ = 0;  // how far its stream has been read
    Version version_ = Version::lean;
    double expected_blocks_ = 0, nanoseconds_of_block_ = usual_block;
    // Lately, if segments had nothing but their numbers: with arguments they count as longer.
    double blocks_in_segment_;
    std::array<CaptureWindow, version_count - 1> windows_;
    bool is_spoilt_ = false;
    trace::SegmentChunk chunk_;
    trace::SegmentChunk skipped_;      // lately
    std::vector<std::byte> values_;    // as they were stored
    CaptureWindow* window_ = nullptr;  // under way
    BlocksInUnits* shown_ = nullptr;   // by earlier windows, if there is to be one only
    bool has_one_window() const { return shown_ != nullptr; }
    // In a burst.
    std::optional<StreamParts> parts_;
    struct CopiedPart {
        Length length;
        bool is_whole;
        Stretch at_end;  // … but for the work
    };
    std::vector<CopiedPart> copied_;        // … and not counted yet: the last ones of the chunk
    CaptureWindow* only_window_ = nullptr;  // that is still to come
    std::uint64_t begin_of_window_ = 0;     // in the stream
    std::vector<Stretch> stretches_;
    Work since_stretch_;
    trace::TraceId window_trace_{};
    trace::SampleId window_sample_{};
    trace::TraceChunk window_chunk_;
    Work work_;
    std::uint64_t instructions_in_windows_ = 0;
    std::uint64_t mean_loads_between_ = 0;
    std::size_t spent_readings_ = most_readings;  // their intervals must be drawn again
};

}  // namespace shadowprof::emu::translator
