#include "sampling/digester.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <exception>

#include "base/error.h"
#include "emu/common/guest_code.h"
#include "profile/profiles.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

std::size_t words(const trace::TraceChunk& chunk) {
    return chunk.blocks.size() + chunk.values.size() + 2 * chunk.timed_loads.size();
}
std::size_t words(const trace::SegmentChunk& chunk) {
    return chunk.segments.size();
}
template <class Message>
std::size_t words(const Message&) {
    return 0;
}

void clear(trace::TraceChunk& chunk) {
    chunk.blocks.clear();
    chunk.values.clear();
    chunk.timed_loads.clear();
    chunk.continuation_places.clear();
}
void clear(trace::SegmentChunk& chunk) {
    chunk.segments.clear();
    chunk.continuations.clear();
}

template <class Chunk>
void keep(std::vector<Chunk>& kept, Chunk& chunk) {
    if (kept.size() == tuning::most_empty_chunks) return;
    clear(chunk);
    kept.push_back(std::move(chunk));
}
// The one that was read last may still be in a cache.
template <class Chunk>
Chunk take_last(std::vector<Chunk>& kept) {
    if (kept.empty()) return {};
    auto chunk = std::move(kept.back());
    kept.pop_back();
    return chunk;
}

// Otherwise another Trace has everything, and this one a part of it.
bool is_of_everything(trace::Contents contents) {
    return contents == trace::Contents::everything || contents == trace::Contents::counts;
}

// Whether a profiler that wants this captured reads Traces of that kind.
bool reads(trace::CapturePlan plan, trace::Contents contents) {
    switch (contents) {
        case trace::Contents::everything:
            return !plan.has(trace::Capture::latency);
        case trace::Contents::counts:
            return plan.empty();
        case trace::Contents::values:
            return plan.has_slots();
        case trace::Contents::accesses:
        case trace::Contents::timings:
            return plan.has(trace::Capture::latency);
    }
    return false;
}

}  // namespace

Digester::Digester(std::shared_ptr<const Chapter> first, trace::ModuleTable& modules,
                   bool in_the_background, MakeProfilers make, TakeHotlists take)
    : make_(std::move(make)), take_(std::move(take)), modules_(modules) {
    open_chapter(std::move(first));
    captures_ = profile::captures_of(profilers_);
    // So that keeping one cannot fail.
    empty_chunks_.reserve(tuning::most_empty_chunks);
    empty_segments_.reserve(tuning::most_empty_chunks);
    worker_ = std::thread([this, in_the_background] {
        if (in_the_background) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
        work();
    });
}

Digester::~Digester() {
    {
        const std::lock_guard lock{mutex_};
        closed_ = true;
    }
    changed_.notify_all();
    if (worker_.joinable()) worker_.join();
}

void Digester::begin(trace::TraceStart start) {
    put(Begin{std::move(start), {}, {}});
}

void Digester::begin(trace::TraceStart start, ptrace::StackSnapshot stack,
                     std::shared_ptr<const proc::Maps> maps) {
    put(Begin{std::move(start), std::move(stack), std::move(maps)});
}

void Digester::chunk(trace::TraceChunk chunk) {
    put(std::move(chunk));
}
void Digester::segments(trace::SegmentChunk chunk) {
    put(std::move(chunk));
}
void Digester::end(trace::TraceEnd end) {
    put(std::move(end));
}
void Digester::end_sample(trace::SampleId sample) {
    put(EndOfSample{sample});
}

trace::TraceChunk Digester::empty_chunk() {
    const std::lock_guard lock{mutex_};
    return take_last(empty_chunks_);
}
trace::SegmentChunk Digester::empty_segments() {
    const std::lock_guard lock{mutex_};
    return take_last(empty_segments_);
}

void Digester::forget() {
    put(Forget{});
}

void Digester::begin_chapter(std::shared_ptr<const Chapter> next) {
    put(NextChapter{std::move(next)});
}

profile::Hotlists Digester::finish(profile::Seen seen) {
    {
        const std::lock_guard lock{mutex_};
        closed_ = true;
    }
    changed_.notify_all();
    worker_.join();
    std::unique_lock lock{mutex_};
    while (!queue_.empty()) read_next(lock);
    lock.unlock();
    return yield(seen);
}

profile::Hotlists Digester::yield(profile::Seen seen) {
    while (!samples_.empty()) attempt([&] { close(samples_.begin()->first); });
    profile::Hotlists hotlists;
    have_all([&](profile::Profiler& profiler) { profiler.yield(hotlists, seen); });
    return hotlists;
}

void Digester::open_chapter(std::shared_ptr<const Chapter> chapter) {
    open_.clear();
    samples_.clear();
    spare_counters_.clear();
    profilers_ = make_(chapter->blocks);
    has_failed_.assign(profilers_.size(), false);
    path_facts_ = std::make_unique<profile::PathFacts>(chapter->blocks);
    chapter_ = std::move(chapter);
}

bool Digester::is_behind() const {
    const std::lock_guard lock{mutex_};
    return queued_words_ > tuning::most_queued_words / 4;
}

Coverage Digester::coverage() const {
    const std::lock_guard lock{mutex_};
    return coverage_;
}

// A failure of profiling never fails the program.
template <class Part>
bool Digester::attempt(Part part) {
    try {
        part();
        return true;
    } catch (const std::exception& e) {
        note_failure(describe_error(e));
        return false;
    }
}

// A profiler that has failed is not to be trusted: it is given nothing more, and yields nothing.
template <class Part>
void Digester::have(std::size_t profiler, Part part) {
    if (!has_failed_[profiler]) has_failed_[profiler] = !attempt(part);
}

template <class Part>
void Digester::have_all(Part part) {
    for (std::size_t n = 0; n < profilers_.size(); ++n) have(n, [&] { part(*profilers_[n]); });
}

void Digester::note_failure(const std::string& why) {
    const std::lock_guard lock{mutex_};
    if (!failure_) failure_ = why;  // others may follow from it
}

std::optional<std::string> Digester::failure() const {
    const std::lock_guard lock{mutex_};
    return failure_;
}

void Digester::put(Message message) {
    std::unique_lock lock{mutex_};
    if (const auto size = std::visit([](auto& m) { return words(m); }, message)) {
        changed_.wait(lock, [&] { return queued_words_ < tuning::most_queued_words; });
        queued_words_ += size;
    }
    // A beginning can wait for what follows it: waking the worker takes time, and the target stands
    // still.
    const bool is_beginning = std::holds_alternative<Begin>(message);
    queue_.push_back(std::move(message));
    if (!is_beginning) changed_.notify_all();
}

void Digester::work() {
    std::unique_lock lock{mutex_};
    while (true) {
        changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
        if (closed_) return;
        read_next(lock);
    }
}

// Releases the lock meanwhile.
void Digester::read_next(std::unique_lock<std::mutex>& lock) {
    auto message = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const auto size = std::visit([](auto& m) { return words(m); }, message);
    attempt([&] { std::visit([this](auto& m) { read(m); }, message); });
    lock.lock();
    keep_memory_of(message);
    queued_words_ -= size;
    if (size != 0) changed_.notify_all();
}

void Digester::keep_memory_of(Message& message) {
    if (auto* const chunk = std::get_if<trace::TraceChunk>(&message)) keep(empty_chunks_, *chunk);
    if (auto* const chunk = std::get_if<trace::SegmentChunk>(&message))
        keep(empty_segments_, *chunk);
}

void Digester::read(Begin& begin) {
    if (begin.stack && begin.maps) {
        for (const auto address : ptrace::unwind(*begin.stack))
            begin.start.call_stack.push_back(emu::locate(*begin.maps, modules_, address));
    }
    const auto& start = begin.start;
    auto& open = open_[start.trace];
    open.sample = start.sample;
    open.contents = start.contents;
    auto& sample = samples_[start.sample];
    if (is_of_everything(start.contents)) {
        sample.only_parts = false;
        sample.weight = start.weight_in_all();
    }
    if (start.contents == trace::Contents::counts) {
        if (!sample.counter && !spare_counters_.empty()) {
            sample.counter = std::move(spare_counters_.back());
            spare_counters_.pop_back();
        }
        if (!sample.counter)
            sample.counter =
                std::make_unique<profile::SegmentCounter>(*path_facts_, chapter_->segments);
        sample.counter->begin(start);
    }
    for (std::size_t n = 0; n < profilers_.size(); ++n) {
        if (!reads(profilers_[n]->captures(), start.contents)) continue;
        have(n, [&] { open.readings.push_back({n, profilers_[n]->open(start)}); });
    }
}

void Digester::read(trace::TraceChunk& chunk) {
    const auto& open = open_.at(chunk.trace);
    for (auto& reading : open.readings)
        have(reading.profiler, [&] { reading.reader->digest(chunk); });
    if (!is_of_everything(open.contents)) return;
    std::uint64_t blocks = 0, instructions = 0;
    for (const auto id : chunk.blocks) {
        if (id == trace::discontinuity) continue;
        ++blocks;
        instructions += chapter_->blocks.at(id).instructions.size();
    }
    cover(blocks, instructions, samples_.at(open.sample).weight);
}

void Digester::read(trace::SegmentChunk& chunk) {
    const auto& open = open_.at(chunk.trace);
    auto& sample = samples_.at(open.sample);
    sample.counter->digest(chunk);
    if (sample.counter->should_be_drained()) drain(open.sample, sample);
}

void Digester::read(trace::TraceEnd& end) {
    const auto& open = open_.at(end.trace);
    const auto contents = open.contents;
    for (auto& reading : open.readings)
        have(reading.profiler, [&] { reading.reader->finish(end); });
    if (contents == trace::Contents::counts) samples_.at(open.sample).counter->finish(end);
    open_.erase(end.trace);
    if (!is_of_everything(contents)) return;
    const std::lock_guard lock{mutex_};
    ++coverage_.ended[end.reason];
}

void Digester::read(EndOfSample& end) {
    const auto open = samples_.find(end.sample);
    const bool covers = open == samples_.end() || !open->second.only_parts;
    close(end.sample);
    have_all([&](profile::Profiler& profiler) { profiler.end_sample(end.sample); });
    if (const auto now = std::chrono::steady_clock::now();
        now - trimmed_ >= tuning::between_trims) {
        malloc_trim(0);
        trimmed_ = now;
    }
    if (!covers) return;
    const std::lock_guard lock{mutex_};
    ++coverage_.samples;
}

void Digester::read(Forget&) {
    open_chapter(chapter_);
    const std::lock_guard lock{mutex_};
    coverage_ = coverage_before_;
}

void Digester::read(NextChapter& next) {
    attempt([&] {
        if (take_) take_(yield(profile::Seen::samples), chapter_->blocks);
    });
    open_chapter(std::move(next.chapter));
    coverage_before_ = coverage();
    malloc_trim(0);
}

void Digester::drain(trace::SampleId id, OpenSample& sample) {
    const auto size = sample.counter->drain([&](profile::Counts& counts) {
        counts.weight = sample.weight;
        have_all([&](profile::Profiler& profiler) { profiler.count(id, counts); });
    });
    cover(size.blocks, size.instructions, sample.weight);
}

void Digester::close(trace::SampleId sample) {
    auto open = samples_.extract(sample);
    if (open.empty() || !open.mapped().counter) return;
    drain(sample, open.mapped());
    spare_counters_.push_back(std::move(open.mapped().counter));
}

void Digester::cover(std::uint64_t blocks, std::uint64_t instructions, std::uint64_t weight) {
    const std::lock_guard lock{mutex_};
    coverage_.blocks += blocks;
    coverage_.instructions += instructions;
    coverage_.weighted_instructions += weight * instructions;
}

}  // namespace shadowprof::sampling
