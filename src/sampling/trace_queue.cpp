#include "sampling/trace_queue.h"

#include <utility>

#include "sampling/tuning.h"

namespace shadowprof::sampling {

namespace {

std::size_t words(const trace::TraceChunk& chunk) {
    return chunk.blocks.size() + chunk.values.size() + 2 * chunk.timed_loads.size();
}
std::size_t words(const trace::SegmentChunk& chunk) {
    return chunk.segments.size() + chunk.arguments.size();
}
std::size_t words(const ClockLooks& clock) {
    std::size_t bytes = 0;
    for (const auto& look : clock.looks) bytes += look.stack ? look.stack->bytes.size() : 0;
    return bytes / sizeof(std::uint64_t);
}
template <class Other>
std::size_t words(const Other&) {
    return 0;
}
std::size_t words_of(const TraceMessage& message) {
    return std::visit([](const auto& m) { return words(m); }, message);
}

void clear(trace::TraceChunk& chunk) {
    chunk.blocks.clear();
    chunk.values.clear();
    chunk.timed_loads.clear();
    chunk.continuation_places.clear();
    chunk.stack_moves.clear();
    chunk.state.reset();
}
void clear(trace::SegmentChunk& chunk) {
    chunk.segments.clear();
    chunk.arguments.clear();
    chunk.continuations.clear();
    chunk.state.reset();
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

}  // namespace

// So that keeping a buffer cannot fail.
TraceQueue::TraceQueue() {
    empty_chunks_.reserve(tuning::most_empty_chunks);
    empty_segments_.reserve(tuning::most_empty_chunks);
}

void TraceQueue::put(TraceMessage message) {
    std::unique_lock lock{mutex_};
    if (const auto size = words_of(message)) {
        changed_.wait(lock, [&] { return queued_words_ < tuning::most_queued_words; });
        queued_words_ += size;
    }
    // A beginning can wait for what follows it: waking the worker takes time, and the target stands
    // still.
    const bool is_beginning = std::holds_alternative<BeginOfTrace>(message);
    queue_.push_back(std::move(message));
    if (!is_beginning) changed_.notify_all();
}

TraceMessage TraceQueue::pop() {
    auto message = std::move(queue_.front());
    queue_.pop_front();
    return message;
}

std::optional<TraceMessage> TraceQueue::next() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
    return closed_ ? std::nullopt : std::optional{pop()};
}

std::optional<TraceMessage> TraceQueue::next_if_any() {
    const std::lock_guard lock{mutex_};
    return queue_.empty() ? std::nullopt : std::optional{pop()};
}

void TraceQueue::is_read(TraceMessage& message) {
    const auto size = words_of(message);
    const std::lock_guard lock{mutex_};
    if (auto* const chunk = std::get_if<trace::TraceChunk>(&message)) keep(empty_chunks_, *chunk);
    if (auto* const chunk = std::get_if<trace::SegmentChunk>(&message))
        keep(empty_segments_, *chunk);
    queued_words_ -= size;
    if (size != 0) changed_.notify_all();
}

void TraceQueue::close() {
    {
        const std::lock_guard lock{mutex_};
        closed_ = true;
    }
    changed_.notify_all();
}

bool TraceQueue::is_nearly_full() const {
    const std::lock_guard lock{mutex_};
    return queued_words_ > tuning::most_queued_words / 4;
}

trace::TraceChunk TraceQueue::empty_chunk() {
    const std::lock_guard lock{mutex_};
    return take_last(empty_chunks_);
}
trace::SegmentChunk TraceQueue::empty_segments() {
    const std::lock_guard lock{mutex_};
    return take_last(empty_segments_);
}

}  // namespace shadowprof::sampling
