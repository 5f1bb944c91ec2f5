#include "emu/translator/thread_recording.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "emu/translator/stored_value.h"
#include "emu/translator/translator.h"

namespace shadowprof::emu::translator {

namespace {

// As far as nothing is known, a segment has so few blocks. How many it has is known after some: it
// may have fifteen times as many.
constexpr std::uint64_t fewest_blocks_in_segment = 3, segments_until_known = 1024;
// Of a burst of values, in blocks.
constexpr std::uint64_t shortest_of_values = 3 * 1024, longest_of_values = 24 * 1024;
// What is known of loads grows with the blocks in bursts, and so does the time that a replica
// takes. A sample of many blocks has the least share of them in bursts. Where it has few, each
// takes long, and bursts are no great matter beside that: so many as are wanted, up to the largest
// share. It has one burst, or where it takes longer, as blocks that take long do, one in so much of
// the original's time: each begins and ends with stops, which are 50 µs together.
struct Share {
    double wanted;  // blocks in a sample
    double least;
    double apart;              // nanoseconds, from one burst to the next
    double shortest, longest;  // burst, in blocks

    double of(double blocks) const { return std::clamp(wanted / blocks, least, largest); }
    double length(double blocks, double nanoseconds_of_block) const {
        const auto part = std::min(blocks, apart / nanoseconds_of_block);
        return std::clamp(of(blocks) * part, shortest, longest);
    }

    static constexpr double largest = 1.0 / 4;
};
constexpr Share with_timings{
    .wanted = 4 * 1024, .least = 1.0 / 32, .apart = 1e6, .shortest = 384, .longest = 32 * 1024};
// The dearest. The longest has most of what a cache of the first or second level holds once more.
constexpr Share with_accesses{
    .wanted = 16 * 1024, .least = 1.0 / 128, .apart = 8e6, .shortest = 512, .longest = 96 * 1024};
// From one load that is timed to the next in a burst.
constexpr double most_loads_between = 128, fewest_loads_between = 8;
constexpr double timings_in_sample = 256;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t most_segments_in_chunk = 1u << 16;

}  // namespace

ThreadRecording::ThreadRecording(Place place, trace::SampleId sample, trace::TraceId trace)
    : place_(place), sample_(sample), trace_(trace), blocks_in_segment_(fewest_blocks_in_segment) {
    auto& [values, accesses, timed] = bursts_;
    values = {Version::values, trace::Contents::values};
    accesses = {Version::accesses, trace::Contents::accesses};
    timed = {Version::timed, trace::Contents::timings};
    if (place_.values.wanted()) values.fraction = place_.values.fraction;
    values.length = values.blocks = shortest_of_values;
    timed.warm_up = place_.loads.warm_up;
}

void ThreadRecording::begin_stream(SharedMemory& memory, std::uint32_t area) {
    memory_ = &memory;
    area_ = area;
    version_ = Version::lean;
    spent_readings_ = most_readings;
    constexpr auto never_ends = std::numeric_limits<double>::infinity();
    expect(never_ends);
    choose_version();
    restart(std::min(until_burst(), segments_until_known * fewest_blocks_in_segment));
}

void ThreadRecording::expect(double blocks, double nanoseconds_of_block) {
    expected_blocks_ = blocks;
    nanoseconds_of_block_ = nanoseconds_of_block;
    auto& [values, accesses, timed] = bursts_;
    const auto& loads = place_.loads;
    const auto share = [&](Burst& burst, const Share& of_it) {
        burst.fraction = of_it.of(blocks);
        burst.length = burst.blocks =
            static_cast<std::uint64_t>(of_it.length(blocks, nanoseconds_of_block));
    };
    if (loads.wanted) share(accesses, with_accesses);
    if (loads.wanted && loads.timed) share(timed, with_timings);
    // Where it would be over before its caches are warm: better half of it than none.
    if (static_cast<double>(timed.warm_up) > blocks / 2)
        timed.warm_up = static_cast<std::uint64_t>(blocks / 2);
    for (auto& burst : bursts_) burst.due = draw_lean_run(burst);
    const auto between = with_timings.of(blocks) * blocks / timings_in_sample;
    mean_loads_between_ =
        static_cast<std::uint64_t>(std::clamp(between, fewest_loads_between, most_loads_between));
}

void ThreadRecording::end_stream() {
    end_burst();
    flush();
    memory_ = nullptr;
}

ThreadRecording::Executed ThreadRecording::read() {
    if (!memory_) return {};
    if (writes_values()) {
        read_values();
        return {};
    }
    const auto executed = look_at_new();
    chunk_.segments.insert(chunk_.segments.end(), executed.segments.begin(),
                           executed.segments.end());
    if (version_ == Version::lean) {
        work_ += executed.work;
        for (auto& burst : bursts_) {
            const auto behind = warm_up(burst, executed.work.blocks);
            burst.due -= std::min(burst.due, behind);
        }
    } else {
        burst_->blocks += executed.work.blocks;
        instructions_in_bursts_ += executed.work.instructions;
    }
    if (chunk_.segments.size() >= most_segments_in_chunk) flush();
    return executed;
}

ThreadRecording::Executed ThreadRecording::skip() {
    if (writes_values()) {
        read_up_to_ = stream_;
        return {};
    }
    const auto executed = look_at_new();
    for (auto& burst : bursts_) warm_up(burst, executed.work.blocks);
    return executed;
}

std::uint64_t ThreadRecording::warm_up(Burst& burst, std::uint64_t blocks) {
    const auto before = std::min(burst.warm_up, blocks);
    burst.warm_up -= before;
    return blocks - before;
}

ThreadRecording::Executed ThreadRecording::look_at_new() {
    const auto count = (stream_ - read_up_to_) / sizeof(trace::SegmentId);
    const auto* const begin =
        reinterpret_cast<const trace::SegmentId*>(memory_->stream_at(read_up_to_));
    read_up_to_ = stream_;
    const Executed executed{{begin, count}, place_.work.of({begin, count})};
    if (version_ == Version::lean && count > 0)
        blocks_in_segment_ = static_cast<double>(executed.work.blocks) / static_cast<double>(count);
    return executed;
}

void ThreadRecording::read_values() {
    const auto* at = memory_->stream_at(read_up_to_);
    const auto* const end = memory_->stream_at(stream_);
    while (at < end) {
        trace::SegmentId id{};
        std::memcpy(&id, at, sizeof id);
        at += sizeof id;
        chunk_.segments.push_back(id);
        for (const auto block : place_.segments.at(id))
            read_block_values(place_.code.block(block), at);
    }
    read_up_to_ = stream_;
    hand_over_burst();
    if (chunk_.segments.size() >= most_segments_in_chunk) flush();
}

void ThreadRecording::read_block_values(const trace::Block& block, const std::byte*& at) {
    burst_chunk_.blocks.push_back(block.id);
    ++burst_->blocks;
    instructions_in_bursts_ += block.instructions.size();
    for (const auto& slot : version_ == Version::accesses ? block.accesses : block.slots) {
        std::uint64_t stored = 0;
        std::memcpy(&stored, at, sizeof stored);
        at += sizeof stored;
        burst_chunk_.values.push_back(value_of_slot(block, slot, stored));
    }
}

// How many they have is known at the next look, which comes too early rather than too late.
void ThreadRecording::units_are_longer() {
    blocks_in_segment_ = Translator::most_blocks_followed;
}

void ThreadRecording::go_on() {
    go_on_for(std::numeric_limits<std::uint64_t>::max());
}

void ThreadRecording::go_on_for(std::uint64_t blocks) {
    choose_version();
    restart(std::min(blocks, until_burst()));
}

void ThreadRecording::go_on_lean_for(std::uint64_t blocks) {
    if (version_ == Version::lean)
        restart(blocks);
    else
        go_on();
}

std::uint64_t ThreadRecording::until_burst() const {
    auto blocks = std::numeric_limits<std::uint64_t>::max();
    for (const auto& burst : bursts_)
        if (burst.fraction > 0) blocks = std::min(blocks, burst.warm_up + burst.due);
    return blocks;
}

void ThreadRecording::choose_version() {
    auto& area = memory_->area(area_);
    switch (version_) {
        case Version::lean:
            if (always_values()) return begin_burst(bursts_.front());
            for (auto& burst : bursts_)
                if (burst.fraction > 0 && burst.warm_up + burst.due == 0) return begin_burst(burst);
            return;
        case Version::values:
        case Version::accesses:
            // The slot was full: the unit at whose entry that was seen is entered again.
            if ((always_values() && version_ == Version::values) || area.left >= 0) {
                ++area.left;
                return;
            }
            break;
        case Version::timed:
            break;
    }
    burst_->blocks = std::max<std::uint64_t>(burst_->blocks, 1);
    burst_->due = draw_lean_run(*burst_);
    end_burst();
}

// In the lean version for about so many blocks.
void ThreadRecording::restart(std::uint64_t blocks) {
    constexpr std::uint64_t room = slot_room / sizeof(trace::SegmentId);
    auto wanted = room;
    if (version_ == Version::timed) wanted = static_cast<std::uint64_t>(burst_->units);
    if (version_ == Version::lean) {
        const auto segments = std::ceil(static_cast<double>(blocks) / blocks_in_segment_);
        wanted = static_cast<std::uint64_t>(std::clamp(segments, 1.0, static_cast<double>(room)));
    }
    stream_ = memory_->place_of_slot(area_) + slot_room - wanted * sizeof(trace::SegmentId);
    read_up_to_ = stream_;
}

std::uint64_t ThreadRecording::draw_lean_run(const Burst& burst) {
    if (!(burst.fraction > 0)) return 0;
    const auto mean = static_cast<double>(burst.blocks) * (1 / burst.fraction - 1);
    return 1 + static_cast<std::uint64_t>(place_.random.exponential(mean));
}

// The two stops of a burst are to be a small part of what it takes. But a sample that is known to
// end shall have several; and where there is no end, and each burst is a sample by itself, there
// are to be a thousand before they become longer.
std::uint64_t ThreadRecording::length_of_values() const {
    constexpr double in_sample = 8, before_longer = 1000, apart = 500e3;
    const auto blocks = std::isinf(expected_blocks_)
                            ? static_cast<double>(work_.blocks) / before_longer
                            : expected_blocks_ / in_sample;
    const auto length = place_.values.fraction * std::min(blocks, apart / nanoseconds_of_block_);
    return std::clamp(static_cast<std::uint64_t>(length), shortest_of_values, longest_of_values);
}

void ThreadRecording::begin_burst(Burst& burst) {
    burst_ = &burst;
    if (burst.version == Version::values && burst.units != 0) burst.length = length_of_values();
    // Units of this version need not be as long as those of the lean one.
    const auto blocks_in_unit =
        burst.units == 0
            ? static_cast<double>(fewest_blocks_in_segment)
            : std::max(1.0, static_cast<double>(burst.blocks) / static_cast<double>(burst.units));
    burst.units =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(burst.length) / blocks_in_unit));
    burst.blocks = 0;
    version_ = burst.version;
    memory_->area(area_).left = burst.units;
    if (version_ == Version::values && always_values()) memory_->area(area_).left = never / 2;
    if (version_ == Version::timed) prepare_readings();
    trace::TraceStart start;
    start.trace = burst_trace_ = place_.numbers.next_trace();
    start.sample = burst_sample_ =
        place_.bursts_are_samples ? place_.numbers.next_sample() : sample_;
    start.contents = burst.contents;
    place_.sink.begin(start);
}

void ThreadRecording::end_burst() {
    if (!burst_) return;
    if (version_ == Version::timed) read_readings();
    hand_over_burst();
    burst_ = nullptr;
    version_ = Version::lean;
    trace::TraceEnd end;
    end.trace = burst_trace_;
    end.reason = "end of a burst";
    place_.sink.end(std::move(end));
    if (place_.bursts_are_samples) place_.sink.end_sample(burst_sample_);
}

void ThreadRecording::hand_over_burst() {
    if (burst_chunk_.blocks.empty() && burst_chunk_.timed_loads.empty()) return;
    burst_chunk_.trace = burst_trace_;
    place_.sink.chunk(std::exchange(burst_chunk_, place_.sink.empty_chunk()));
}

// Uniform from 1 up to nearly twice the mean.
std::int64_t ThreadRecording::draw_loads() {
    return 1 + static_cast<std::int64_t>(place_.random.below(2 * mean_loads_between_ - 1));
}

void ThreadRecording::prepare_readings() {
    auto& area = memory_->area(area_);
    auto* const readings = memory_->readings(area_);
    for (std::size_t i = 0; i < spent_readings_; ++i) readings[i].next = draw_loads();
    readings[most_readings - 1].next = never;
    area.reading = memory_->place_of_readings(area_);
    if (spent_readings_ == most_readings) area.loads_left = draw_loads();
}

void ThreadRecording::read_readings() {
    const auto& area = memory_->area(area_);
    const auto* const readings = memory_->readings(area_);
    spent_readings_ = (area.reading - memory_->place_of_readings(area_)) / sizeof(LoadReading);
    for (std::size_t i = 0; i < spent_readings_; ++i) {
        const auto& reading = readings[i];
        burst_chunk_.timed_loads.push_back({trace::BlockId{reading.block}, reading.access,
                                            reading.end - reading.begin, reading.address});
    }
}

void ThreadRecording::cut(const Unit& unit, std::size_t block, std::size_t instruction) {
    read();
    std::vector<trace::BlockId> blocks;
    for (std::size_t i = 0; i < block; ++i) blocks.push_back(unit.blocks[i]->id);
    if (instruction > 0) blocks.push_back(place_.code.cut(*unit.blocks[block], instruction).id);
    if (blocks.empty()) return;
    chunk_.segments.push_back(place_.segments.publish(blocks));
    if (!writes_values()) return;
    const auto* at = memory_->stream_at(stream_) + sizeof(trace::SegmentId);
    for (const auto id : blocks) read_block_values(place_.code.block(id), at);
    hand_over_burst();
}

void ThreadRecording::cut_before(const Unit& unit, Address instruction) {
    for (std::size_t b = 0; b < unit.blocks.size(); ++b) {
        const auto& instructions = unit.blocks[b]->instructions;
        const auto at = std::find_if(instructions.begin(), instructions.end(),
                                     [&](const auto& each) { return each.address == instruction; });
        if (at == instructions.end()) continue;
        cut(unit, b, static_cast<std::size_t>(at - instructions.begin()));
        return;
    }
}

void ThreadRecording::discontinuity(Address continuation) {
    chunk_.segments.push_back(trace::segment_discontinuity);
    chunk_.continuations.push_back({continuation, place_.code.place_of(continuation)});
}

void ThreadRecording::flush() {
    chunk_.trace = trace_;
    if (!chunk_.segments.empty())
        place_.sink.segments(std::exchange(chunk_, place_.sink.empty_segments()));
}

}  // namespace shadowprof::emu::translator
