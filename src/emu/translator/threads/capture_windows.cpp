// The windows in which a thread records more than the way it takes: when, how long, and what is
// read.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "emu/translator/threads/thread_recording.h"
#include "emu/tuning.h"

namespace shadowprof::emu::translator {

namespace {

using tuning::fewest_blocks_in_segment;
using tuning::WindowShare;

// The share of windows among so many blocks.
double share_of_blocks(const WindowShare& share, double blocks) {
    return std::clamp(share.wanted / blocks, share.least, tuning::largest_window_share);
}
// The length of a window, in blocks.
double length_of_window(const WindowShare& share, double blocks, double nanoseconds_of_block) {
    const auto part = std::min(blocks, share.apart / nanoseconds_of_block);
    return std::clamp(share_of_blocks(share, blocks) * part, share.shortest, share.longest);
}

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

}  // namespace

void ThreadRecording::expect(double blocks, double nanoseconds_of_block) {
    expected_blocks_ = blocks;
    nanoseconds_of_block_ = nanoseconds_of_block;
    auto& [values, accesses, timed] = windows_;
    const auto& loads = place_.loads;
    const auto share = [&](CaptureWindow& window, const WindowShare& wanted) {
        window.fraction = share_of_blocks(wanted, blocks);
        window.length = window.blocks =
            static_cast<std::uint64_t>(length_of_window(wanted, blocks, nanoseconds_of_block));
    };
    if (loads.wanted) share(accesses, tuning::windows_of_accesses);
    if (loads.wanted && loads.timed) share(timed, tuning::windows_of_timings);
    // A sample that would be over before its caches are warm times loads in its second half.
    if (static_cast<double>(timed.warm_up) > blocks / 2)
        timed.warm_up = static_cast<std::uint64_t>(blocks / 2);
    for (auto& window : windows_) window.due = draw_lean_run(window);
    const auto between =
        share_of_blocks(tuning::windows_of_timings, blocks) * blocks / tuning::timings_in_sample;
    mean_loads_between_ = static_cast<std::uint64_t>(std::clamp(
        between, tuning::fewest_loads_between_timings, tuning::most_loads_between_timings));
}

void ThreadRecording::drive(std::uint64_t segments, BlocksInUnits& shown) {
    if (always_values()) return;
    shown_ = &shown;
    std::vector<CaptureWindow*> wanted;
    for (auto& window : windows_)
        if (window.fraction > 0) wanted.push_back(&window);
    only_window_ = wanted.empty() ? nullptr : wanted[place_.random.below(wanted.size())];
    // What threads share shows where all of them look at the same time.
    auto& accesses = windows_[1];
    if (start_.has_company && accesses.fraction > 0) only_window_ = &accesses;
    drive_on(segments);
}

void ThreadRecording::drive_on(std::uint64_t segments) {
    if (always_values()) return go_on();
    end_window();
    lay_out_parts(segments);
    prepare_only_window();
}

void ThreadRecording::lay_out_parts(std::uint64_t segments) {
    parts_.emplace(*memory_, area_, segments);
    stream_ = read_up_to_ = parts_->begin();
}

// The thread finds it when its time is over.
void ThreadRecording::prepare_only_window() {
    auto& area = memory_->area(area_);
    area.window_began = area.window_stream = 0;
    if (!only_window_) return;
    only_window_->units = 0;
    prepare_window(*only_window_);
    const auto units = only_window_->version == Version::timed
                           ? static_cast<std::uint64_t>(only_window_->units)
                           : memory_->stream_room() / sizeof(trace::SegmentId);
    area.window_stream = begin_of_window_ = stream_with_room_for(units);
    memory_->tables().use(only_window_->version);
    area.window_table =
        memory_->tables_place() + static_cast<std::size_t>(only_window_->version) * table_size;
}

void ThreadRecording::look_whether_in_window() {
    if (!parts_ || !only_window_ || !memory_ || is_spoilt_) return;
    if (memory_->read_area(area_).window_began == 0) return;
    read();
    begin_window(*std::exchange(only_window_, nullptr));
    stream_ = read_up_to_ = begin_of_window_;
}

std::uint64_t ThreadRecording::draw_lean_run(const CaptureWindow& window) {
    if (!(window.fraction > 0)) return 0;
    const auto mean = static_cast<double>(window.blocks) * (1 / window.fraction - 1);
    return 1 + static_cast<std::uint64_t>(place_.random.exponential(mean));
}

std::uint64_t ThreadRecording::length_of_values() const {
    const auto blocks =
        std::isinf(expected_blocks_)
            ? static_cast<double>(work_.blocks) / tuning::windows_of_values_before_longer
            : expected_blocks_ / tuning::windows_of_values_in_sample;
    const auto length =
        place_.values.fraction *
        std::min(blocks, tuning::nanoseconds_between_windows_of_values / nanoseconds_of_block_);
    return std::clamp(static_cast<std::uint64_t>(length), tuning::shortest_window_of_values,
                      tuning::longest_window_of_values);
}

// In the window that is under way.
std::int64_t ThreadRecording::most_units_left(const CaptureWindow& window) const {
    return window.version == Version::values && always_values() ? never / 2 : window.units;
}

// Units of this version may be shorter than those of the lean one.
double ThreadRecording::blocks_in_units_of(const CaptureWindow& window) const {
    if (window.units != 0)
        return std::max(1.0,
                        static_cast<double>(window.blocks) / static_cast<double>(window.units));
    if (!has_one_window()) return fewest_blocks_in_segment;
    // As long as nothing is known: a window that is too long holds the thread up.
    constexpr auto most = static_cast<double>(tuning::most_blocks_in_unit);
    return (*shown_)[static_cast<std::size_t>(window.version)].value().value_or(most);
}

// Of a window of a burst.
bool ThreadRecording::is_seen_to_end() const {
    const auto slot = memory_->place_of_slot(area_);
    return window_->version == Version::timed ? stream_ - slot >= memory_->stream_room()
                                              : memory_->read_area(area_).left < 0;
}

void ThreadRecording::learn_blocks_in_units() {
    if (!has_one_window() || window_->units <= 0 || !is_seen_to_end()) return;
    const auto seen =
        std::clamp(static_cast<double>(window_->blocks) / static_cast<double>(window_->units), 1.0,
                   static_cast<double>(tuning::most_blocks_in_unit));
    (*shown_)[static_cast<std::size_t>(window_->version)].learn(seen);
}

void ThreadRecording::begin_window(CaptureWindow& window) {
    if (!parts_) prepare_window(window);
    window_ = &window;
    version_ = window.version;
    auto start = start_;
    start.trace = window_trace_ = place_.numbers.next_trace();
    start.sample = window_sample_ =
        place_.windows_are_samples ? place_.numbers.next_sample() : sample_;
    start.contents = window.contents;
    start.from_thread_start = start_.from_thread_start && always_values();
    start.state = state_now().value_or(start_.state);
    place_.sink.begin(start);
    start_.from_thread_start = false;
}

// How long it is to be.
void ThreadRecording::prepare_window(CaptureWindow& window) {
    if (window.version == Version::values && window.units != 0) window.length = length_of_values();
    window.units = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(window.length) / blocks_in_units_of(window)));
    window.blocks = 0;
    memory_->area(area_).left = most_units_left(window);
    if (window.version == Version::timed) prepare_readings();
}

void ThreadRecording::end_window() {
    if (!window_) return;
    version_ = Version::lean;
    learn_blocks_in_units();
    if (window_->version == Version::timed && !is_spoilt_) read_readings();
    hand_over_window();
    window_ = nullptr;
    trace::TraceEnd end;
    end.trace = window_trace_;
    end.reason = "end of a capture window";
    place_.sink.end(std::move(end));
    if (place_.windows_are_samples) place_.sink.end_sample(window_sample_);
}

void ThreadRecording::hand_over_window() {
    if (window_chunk_.blocks.empty() && window_chunk_.timed_loads.empty()) return;
    window_chunk_.trace = window_trace_;
    window_chunk_.state = state_now();
    place_.sink.chunk(std::exchange(window_chunk_, place_.sink.empty_chunk()));
}

// Uniform, from 1 to nearly twice the mean.
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
    const auto used = memory_->read_area(area_).reading - memory_->place_of_readings(area_);
    spent_readings_ = std::min(used / sizeof(LoadReading), most_readings);
    bool is_sound = used % sizeof(LoadReading) == 0 && used / sizeof(LoadReading) <= most_readings;
    for (std::size_t i = 0; is_sound && i < spent_readings_; ++i) is_sound = read_reading(i);
    if (!is_sound) spoil();
}

bool ThreadRecording::read_reading(std::size_t index) {
    const auto reading = memory_->read_reading(area_, index);
    const trace::BlockId id{reading.block};
    if (!place_.code.knows(id)) return false;
    const auto& block = place_.code.block(id);
    if (reading.access >= block.accesses.size()) return false;
    const auto& access = block.accesses[reading.access];
    const auto& operand = block.instructions[access.instruction].operands()[access.operand];
    if (!trace::is_certain_load(operand)) return false;
    window_chunk_.timed_loads.push_back(
        {id, reading.access, reading.end - reading.begin, reading.address});
    return true;
}

}  // namespace shadowprof::emu::translator
