#include "emu/translator/threads/thread_recording.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "emu/translator/stored_value.h"
#include "emu/tuning.h"

namespace shadowprof::emu::translator {

namespace {

using tuning::fewest_blocks_in_segment;

constexpr std::size_t most_segments_in_chunk = 1u << 16;

// Appends the words with which `stored` begins, which then begins behind them. False if it has not
// so many.
bool take_words(std::span<const std::byte>& stored, std::size_t count,
                std::vector<std::uint64_t>& append_to) {
    const auto size = count * sizeof(std::uint64_t);
    if (stored.size() < size) return false;
    append_to.resize(append_to.size() + count);
    std::memcpy(append_to.data() + append_to.size() - count, stored.data(), size);
    stored = stored.subspan(size);
    return true;
}

}  // namespace

ThreadRecording::ThreadRecording(Place place, trace::SampleId sample, trace::TraceId trace)
    : place_(place), sample_(sample), trace_(trace), blocks_in_segment_(fewest_blocks_in_segment) {
    auto& [values, accesses, timed] = windows_;
    values = {Version::values, trace::Contents::values};
    accesses = {Version::accesses, trace::Contents::accesses};
    timed = {Version::timed, trace::Contents::timings};
    if (place_.values.wanted()) values.fraction = place_.values.fraction;
    values.length = values.blocks = tuning::shortest_window_of_values;
    timed.warm_up = place_.loads.warm_up;
}

void ThreadRecording::belongs_to(const trace::TraceStart& start) {
    start_ = start;
    start_.stands_for = 0;
    if (!start.signals) start_.signals_as_in = trace_;
}

void ThreadRecording::begin_stream(SharedMemory& memory, std::uint32_t area) {
    memory_ = &memory;
    area_ = area;
    version_ = Version::lean;
    is_spoilt_ = false;
    spent_readings_ = most_readings;
    constexpr auto never_ends = std::numeric_limits<double>::infinity();
    expect(never_ends);
    choose_version();
    restart(std::min(until_window(), tuning::segments_until_known * fewest_blocks_in_segment));
}

void ThreadRecording::end_stream() {
    end_window();
    flush();
    memory_ = nullptr;
}

void ThreadRecording::left_at(std::uint64_t stream) {
    // It asks although its stream has ended: the program wrote into its area.
    if (!memory_) return spoil();
    stream &= ~alias;
    if (parts_ && version_ == Version::lean) {  // what is possible is known when it is read
        stream_ = stream;
        return;
    }
    const bool is_possible = read_up_to_ <= stream && stream <= memory_->place_of_readings(area_) &&
                             (stream - read_up_to_) % sizeof(trace::SegmentId) == 0;
    if (!is_possible) return spoil();
    stream_ = stream;
}

ThreadRecording::Executed ThreadRecording::read() {
    if (!memory_ || is_spoilt_) return {};
    flush_if_long();
    if (writes_values()) {
        read_values();
        return {};
    }
    Executed executed;
    if (!copy_new(chunk_, executed)) return {};
    if (version_ == Version::lean) {
        work_ += executed.work;
        for (auto& window : windows_) {
            const auto after = warm_up(window, executed.work.blocks);
            window.due -= std::min(window.due, after);
        }
    } else {
        window_->blocks += executed.work.blocks;
        instructions_in_windows_ += executed.work.instructions;
    }
    return executed;
}

void ThreadRecording::set_aside() {
    if (!memory_ || is_spoilt_) return;
    flush_if_long();
    const auto before = counted_in(chunk_);
    if (!copy_parts(chunk_)) spoil_behind(before, chunk_);
}

// Not what is not counted.
void ThreadRecording::flush_if_long() {
    if (copied_.empty() && chunk_.segments.size() >= most_segments_in_chunk) flush();
}

ThreadRecording::Executed ThreadRecording::skip() {
    if (writes_values() || is_spoilt_) {
        read_up_to_ = stream_;
        return {};
    }
    Executed executed;
    skipped_.segments.clear();
    skipped_.arguments.clear();
    if (!copy_new(skipped_, executed)) return {};
    for (auto& window : windows_) warm_up(window, executed.work.blocks);
    return executed;
}

std::uint64_t ThreadRecording::warm_up(CaptureWindow& window, std::uint64_t blocks) {
    const auto before = std::min(window.warm_up, blocks);
    window.warm_up -= before;
    return blocks - before;
}

// Appends what was written in the lean or timed version since the last time. False: it is spoilt.
bool ThreadRecording::copy_new(trace::SegmentChunk& append_to, Executed& executed) {
    const auto before = counted_in(append_to);
    const bool is_in_parts = parts_ && version_ == Version::lean;
    const bool is_copied =
        is_in_parts ? copy_parts(append_to) : copy(read_up_to_, stream_, append_to);
    executed.segments = std::span{append_to.segments}.subspan(before.segments);
    const auto work = !is_copied    ? std::nullopt
                      : is_in_parts ? count_parts(executed.segments)
                                    : place_.work.of(executed.segments);
    if (!work) {
        executed = {};
        spoil_behind(before, append_to);
        return false;
    }
    executed.work = *work;
    if (!is_in_parts && version_ == Version::lean && stream_ > read_up_to_)
        blocks_in_segment_ =
            static_cast<double>(executed.work.blocks) /
            static_cast<double>((stream_ - read_up_to_) / sizeof(trace::SegmentId));
    read_up_to_ = stream_;
    return true;
}

ThreadRecording::Length ThreadRecording::counted_in(const trace::SegmentChunk& chunk) const {
    Length length{chunk.segments.size(), chunk.arguments.size()};
    for (const auto& part : copied_) {
        length.segments -= part.length.segments;
        length.arguments -= part.length.arguments;
    }
    return length;
}

// What was not counted may be anything.
void ThreadRecording::spoil() {
    const auto sound = counted_in(chunk_);
    chunk_.segments.resize(sound.segments);
    chunk_.arguments.resize(sound.arguments);
    copied_.clear();
    is_spoilt_ = true;
}

// Of the part that was being copied some may be there.
void ThreadRecording::spoil_behind(const Length& sound, trace::SegmentChunk& chunk) {
    chunk.segments.resize(sound.segments);
    chunk.arguments.resize(sound.arguments);
    copied_.clear();
    spoil();
}

bool ThreadRecording::copy_parts(trace::SegmentChunk& append_to) {
    const auto written = parts_->take(stream_);
    if (!written) return false;
    for (const auto& each : *written) {
        const auto segments = append_to.segments.size(), arguments = append_to.arguments.size();
        if (!copy(each.from, each.until, append_to)) return false;
        copied_.push_back(
            {{append_to.segments.size() - segments, append_to.arguments.size() - arguments},
             each.is_whole,
             each.at_end});
    }
    return true;
}

std::optional<Work> ThreadRecording::count_parts(std::span<const trace::SegmentId> copied) {
    Work work;
    for (const auto& [length, is_whole, at_end] : std::exchange(copied_, {})) {
        const auto part = copied.first(length.segments);
        copied = copied.subspan(length.segments);
        auto of_part = place_.work.of(part);
        if (!of_part) return {};
        of_part->fresh = place_.work.count_new(part, static_cast<std::uint64_t>(trace_));
        work += *of_part;
        since_stretch_ += *of_part;
        if (!is_whole) continue;
        stretches_.push_back(at_end);
        stretches_.back().work = std::exchange(since_stretch_, {});
    }
    return work;
}

bool ThreadRecording::copy(std::uint64_t from, std::uint64_t until,
                           trace::SegmentChunk& append_to) {
    return records_arguments() ? copy_with_arguments(from, until, append_to)
                               : memory_->read_stream(area_, from, until, append_to.segments);
}

bool ThreadRecording::copy_with_arguments(std::uint64_t from, std::uint64_t until,
                                          trace::SegmentChunk& append_to) {
    values_.clear();
    if (!memory_->read_stream(area_, from, until, values_)) return false;
    for (std::span<const std::byte> stored = values_; !stored.empty();) {
        trace::SegmentId id{};
        if (stored.size() < sizeof id) return false;
        std::memcpy(&id, stored.data(), sizeof id);
        stored = stored.subspan(sizeof id);
        const auto count = place_.work.arguments_of(id);
        if (!count || !take_words(stored, *count, append_to.arguments)) return false;
        append_to.segments.push_back(id);
    }
    return true;
}

void ThreadRecording::read_values() {
    values_.clear();
    if (!memory_->read_stream(area_, read_up_to_, stream_, values_)) return spoil();
    read_up_to_ = stream_;
    take_values();
}

void ThreadRecording::take_values() {
    const auto blocks = window_chunk_.blocks.size(), values = window_chunk_.values.size(),
               segments = chunk_.segments.size(), arguments = chunk_.arguments.size();
    bool is_sound = true;
    std::span<const std::byte> stored = values_;
    while (is_sound && !stored.empty()) is_sound = read_unit_values(stored);
    if (!is_sound) {
        window_chunk_.blocks.resize(blocks);
        window_chunk_.values.resize(values);
        chunk_.segments.resize(segments);
        chunk_.arguments.resize(arguments);
        spoil();
    }
    hand_over_window();
}

bool ThreadRecording::read_unit_values(std::span<const std::byte>& stored) {
    trace::SegmentId id{};
    if (stored.size() < sizeof id) return false;
    std::memcpy(&id, stored.data(), sizeof id);
    if (static_cast<std::uint32_t>(id) >= place_.segments.size()) return false;
    stored = stored.subspan(sizeof id);
    chunk_.segments.push_back(id);
    const auto blocks = place_.segments.at(id);
    return std::all_of(blocks.begin(), blocks.end(), [&](trace::BlockId block) {
        return read_block_values(place_.code.block(block), stored);
    });
}

bool ThreadRecording::read_block_values(const trace::Block& block,
                                        std::span<const std::byte>& stored) {
    auto behind_arguments = stored;
    if (!take_words(behind_arguments, block.arguments(), chunk_.arguments)) return false;
    // In a window of values they are the first of these, too.
    if (window_->version != Version::values) stored = behind_arguments;
    const auto& slots = window_->version == Version::accesses ? block.accesses : block.slots;
    std::uint64_t value = 0;
    if (stored.size() < slots.size() * sizeof value) return false;
    window_chunk_.blocks.push_back(block.id);
    ++window_->blocks;
    instructions_in_windows_ += block.instructions.size();
    for (const auto& slot : slots) {
        std::memcpy(&value, stored.data(), sizeof value);
        stored = stored.subspan(sizeof value);
        window_chunk_.values.push_back(value_of_slot(block, slot, value));
    }
    return true;
}

// How many blocks they have is known at the next look, which comes too early rather than too late.
void ThreadRecording::units_are_longer() {
    blocks_in_segment_ = tuning::most_blocks_followed;
}

void ThreadRecording::go_on() {
    go_on_for(std::numeric_limits<std::uint64_t>::max());
}

void ThreadRecording::go_on_for(std::uint64_t blocks) {
    choose_version();
    restart(std::min(blocks, until_window()));
}

void ThreadRecording::go_on_lean_for(std::uint64_t blocks) {
    if (version_ == Version::lean)
        restart(blocks);
    else
        go_on();
}

std::uint64_t ThreadRecording::until_window() const {
    auto blocks = std::numeric_limits<std::uint64_t>::max();
    for (const auto& window : windows_)
        if (window.fraction > 0) blocks = std::min(blocks, window.warm_up + window.due);
    return blocks;
}

void ThreadRecording::choose_version() {
    switch (version_) {
        case Version::lean:
            if (always_values()) return begin_window(windows_.front());
            for (auto& window : windows_)
                if (window.fraction > 0 && window.warm_up + window.due == 0)
                    return begin_window(window);
            return;
        case Version::values:
        case Version::accesses: {
            // The slot was full. The unit that noticed it at its entry is entered once more.
            const auto left = memory_->read_area(area_).left;
            if (left > most_units_left(*window_)) spoil();
            if ((always_values() && version_ == Version::values) || left >= 0) {
                memory_->area(area_).left = std::min(left, most_units_left(*window_)) + 1;
                return;
            }
            break;
        }
        case Version::timed:
            break;
    }
    window_->blocks = std::max<std::uint64_t>(window_->blocks, 1);
    window_->due = draw_lean_run(*window_);
    end_window();
}

// `blocks` is how long the lean version is to run, roughly.
void ThreadRecording::restart(std::uint64_t blocks) {
    const auto room = memory_->stream_room() / sizeof(trace::SegmentId);
    auto wanted = room;
    if (version_ == Version::timed) wanted = static_cast<std::uint64_t>(window_->units);
    if (version_ == Version::lean) {
        const auto segments = std::ceil(static_cast<double>(blocks) / blocks_in_segment_);
        wanted = static_cast<std::uint64_t>(std::clamp(segments, 1.0, static_cast<double>(room)));
    }
    stream_ = read_up_to_ = stream_with_room_for(wanted);
}

std::uint64_t ThreadRecording::stream_with_room_for(std::uint64_t segments) const {
    return memory_->place_of_slot(area_) + memory_->stream_room() -
           segments * sizeof(trace::SegmentId);
}

void ThreadRecording::cut(const Unit& unit, std::size_t block, std::size_t instruction) {
    std::vector<trace::BlockId> blocks;
    for (std::size_t i = 0; i < block; ++i) blocks.push_back(unit.blocks[i]->id);
    if (instruction > 0) blocks.push_back(place_.code.cut(*unit.blocks[block], instruction).id);
    if (blocks.empty()) return;
    read();
    if (is_spoilt_) return;
    const auto arguments = chunk_.arguments.size();
    if (!read_values_of(blocks)) {
        chunk_.arguments.resize(arguments);
        return spoil();
    }
    chunk_.segments.push_back(place_.segments.publish(blocks));
    if (writes_values()) hand_over_window();
}

// Of a unit that was not left by an exit. There is room for all values of a unit, but perhaps not
// as much as for two.
bool ThreadRecording::read_values_of(std::span<const trace::BlockId> blocks) {
    if (!writes_values() && !records_arguments()) return true;
    values_.clear();
    const auto until = std::min(stream_ + sizeof(trace::SegmentId) + most_values_in_unit * 8,
                                memory_->place_of_readings(area_));
    memory_->read_stream(area_, stream_, until, values_);
    auto stored = std::span<const std::byte>{values_}.subspan(
        std::min(values_.size(), sizeof(trace::SegmentId)));
    return std::ranges::all_of(blocks, [&](trace::BlockId id) {
        const auto& block = place_.code.block(id);
        if (writes_values()) return read_block_values(block, stored);
        return take_words(stored, block.arguments(), chunk_.arguments);
    });
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

void ThreadRecording::discontinuity(Address continuation, const trace::StackMove& move) {
    const auto place = place_.code.place_of(continuation);
    chunk_.segments.push_back(trace::segment_discontinuity);
    chunk_.continuations.push_back({continuation, place});
    start_.signals_as_in.reset();
    if (start_.signals) start_.signals->moved(move);
    if (move.stack == trace::StackMove::new_stack) start_.from_thread_start = true;
    if (version_ != Version::values) return;
    window_chunk_.blocks.push_back(trace::discontinuity);
    window_chunk_.values.push_back(continuation.value);
    window_chunk_.continuation_places.push_back(place);
    window_chunk_.stack_moves.push_back(move);
}

void ThreadRecording::flush() {
    chunk_.trace = trace_;
    if (chunk_.segments.empty()) return;
    chunk_.state = state_now();
    place_.sink.segments(std::exchange(chunk_, place_.sink.empty_segments()));
}

std::optional<trace::ThreadState> ThreadRecording::state_now() const {
    if (!place_.state_now) return {};
    const auto now = place_.state_now(place_.code.pid(), start_.state.tid);
    return now.processor < 0 ? std::nullopt : std::optional(now);  // it may be gone
}

}  // namespace shadowprof::emu::translator
