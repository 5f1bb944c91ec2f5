// Fills chunks of one Trace and hands them on: the engines' side of the seam.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "emu/common/guest_code.h"
#include "trace/trace.h"

namespace shadowprof::emu {

class TraceRecorder {
  public:
    TraceRecorder(trace::TraceSink& sink, trace::TraceId trace) : sink_(sink), trace_(trace) {
        start_chunk();
    }

    // An executed block. The values of its slots follow it, or came after the block before it.
    void block(const trace::Block& block) {
        chunk_.blocks.push_back(block.id);
        instructions_ += block.instructions.size();
        if (chunk_.blocks.size() >= blocks_per_chunk) flush();
    }
    // Several at once, with all their values.
    void append(std::span<const trace::BlockId> blocks, std::span<const std::uint64_t> values) {
        chunk_.blocks.insert(chunk_.blocks.end(), blocks.begin(), blocks.end());
        chunk_.values.insert(chunk_.values.end(), values.begin(), values.end());
        if (chunk_.blocks.size() >= blocks_per_chunk) flush();
    }
    void value(std::uint64_t value) { chunk_.values.push_back(value); }
    void drop_values_after(std::size_t count) { chunk_.values.resize(count); }
    std::size_t value_count() const { return chunk_.values.size(); }

    // Control goes elsewhere than the last block's exit says. It would have gone on at
    // `continuation`.
    void discontinuity(Address continuation, GuestCode& code, const trace::StackMove& move = {}) {
        chunk_.blocks.push_back(trace::discontinuity);
        chunk_.values.push_back(continuation.value);
        chunk_.continuation_places.push_back(code.place_of(continuation));
        chunk_.stack_moves.push_back(move);
    }
    void end(std::string reason, Address continuation, trace::Location place, bool thread_exited) {
        hand_over();
        sink_.end({trace_, std::move(reason), continuation, place, thread_exited});
    }
    // From now on chunks say what is so of the thread.
    void tell_state(std::function<trace::ThreadState()> now) {
        state_now_ = std::move(now);
        look_at_state();
    }
    // It may have changed.
    void look_at_state() {
        if (!state_now_) return;
        const auto now = state_now_();
        if (now.processor < 0 || now == state_) return;  // it may be gone
        hand_over();
        start_chunk();
        state_ = now;
    }
    // In the blocks recorded so far.
    std::uint64_t instructions() const { return instructions_; }

  private:
    static constexpr std::size_t blocks_per_chunk = 1u << 14;
    void start_chunk() {
        chunk_ = sink_.empty_chunk();
        chunk_.trace = trace_;
    }
    void hand_over() {
        if (chunk_.blocks.empty()) return;
        if (state_now_) chunk_.state = state_;
        sink_.chunk(std::move(chunk_));
    }
    void flush() {
        hand_over();
        start_chunk();
        look_at_state();
    }

    trace::TraceSink& sink_;
    trace::TraceId trace_;
    std::function<trace::ThreadState()> state_now_;
    trace::ThreadState state_;
    trace::TraceChunk chunk_;
    std::uint64_t instructions_ = 0;
};

}  // namespace shadowprof::emu
