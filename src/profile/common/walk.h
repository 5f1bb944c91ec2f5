// Walks a Trace chunk by chunk and says what control did, the same wherever chunks were cut.
//
// A block's exit is only known from what follows it: the next block, or, where something
// intervened (a signal, the end of the Trace), the address at which the thread would have gone on.
// Visitors are told of every executed block once, and of everything between blocks:
//
//   run(before, blocks)      control went from `before` (no_block if it came from elsewhere) to the
//                            first of the blocks and so on, each time by the former one's own exit
//   leave(from, next, place) from's exit led to `next`, then control went elsewhere
//   interrupted()            a discontinuity, after leave if there was a block before it; or, of
//                            those who want to know, interrupted(move): what the stack did
//   end(from, trace_end)     the last block; from's exit led to trace_end.continuation
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "base/error.h"
#include "trace/trace.h"

namespace shadowprof::profile {

inline constexpr trace::BlockId no_block = trace::discontinuity;

class Walker {
  public:
    explicit Walker(const trace::BlockTable& blocks) : blocks_(blocks) {}

    template <class Visitor>
    void digest(const trace::TraceChunk& chunk, Visitor& visitor) {
        const auto* const end = chunk.blocks.data() + chunk.blocks.size();
        std::size_t values = 0;  // before `at`; summed only where a discontinuity asks
        std::size_t discontinuities = 0;
        for (const auto* at = chunk.blocks.data(); at != end;) {
            const auto* const run_end = std::find(at, end, trace::discontinuity);
            if (run_end != at) {
                visitor.run(previous_, std::span{at, run_end});
                previous_ = run_end[-1];
            }
            if (run_end == end) break;
            for (; at != run_end; ++at) values += blocks_.at(*at).slots.size();
            SHADOWPROF_ASSERT(
                values < chunk.values.size() && discontinuities < chunk.continuation_places.size(),
                "discontinuity " + std::to_string(discontinuities));
            if (previous_ != no_block) {
                visitor.leave(previous_, Address{chunk.values[values]},
                              chunk.continuation_places[discontinuities]);
            }
            if constexpr (requires { visitor.interrupted(trace::StackMove{}); })
                visitor.interrupted(discontinuities < chunk.stack_moves.size()
                                        ? chunk.stack_moves[discontinuities]
                                        : trace::StackMove{});
            else
                visitor.interrupted();
            previous_ = no_block;
            ++discontinuities;
            ++values;
            ++at;
        }
    }

    template <class Visitor>
    void finish(const trace::TraceEnd& end, Visitor& visitor) {
        if (previous_ != no_block) visitor.end(previous_, end);
    }

  private:
    const trace::BlockTable& blocks_;
    trace::BlockId previous_ = no_block;
};

}  // namespace shadowprof::profile
