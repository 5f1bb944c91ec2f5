// Walks a Trace chunk by chunk and says what control did, the same wherever chunks were cut.
//
// A block's exit is only known from what follows it: the next block, or, where something
// intervened (a signal, the end of the Trace), the address at which the thread would have gone on.
// Visitors are told of every executed block exactly once as the left side of pass, leave or end:
//
//   enter(block)             the first block, and the first after a discontinuity
//   pass(from, to)           control went from one block to the next by from's own exit
//   leave(from, next, place) from's exit led to `next`, then control went elsewhere
//   interrupted()            a discontinuity, after leave if there was a block before it
//   end(from, trace_end)     the last block; from's exit led to trace_end.continuation
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "trace/trace.h"

namespace shadowprof::profile {

class Walker {
  public:
    explicit Walker(const trace::BlockTable& blocks) : blocks_(blocks) {}

    template <class Visitor>
    void digest(const trace::TraceChunk& chunk, Visitor& visitor) {
        auto previous = previous_;
        std::size_t discontinuities = 0;
        std::size_t values = 0;           // of the blocks before `values_known_to`
        std::size_t values_known_to = 0;  // summed only where a discontinuity asks
        for (std::size_t i = 0; i < chunk.blocks.size(); ++i) {
            const auto id = chunk.blocks[i];
            if (id == trace::discontinuity) [[unlikely]] {
                for (; values_known_to < i; ++values_known_to)
                    values += value_count(chunk.blocks[values_known_to]);
                SHADOWPROF_ASSERT(values < chunk.values.size() &&
                                      discontinuities < chunk.continuation_places.size(),
                                  "discontinuity " + std::to_string(discontinuities));
                const auto& place = chunk.continuation_places[discontinuities++];
                if (previous != nothing)
                    visitor.leave(previous, Address{chunk.values[values]}, place);
                visitor.interrupted();
                previous = nothing;
                continue;
            }
            if (previous != nothing) [[likely]]
                visitor.pass(previous, id);
            else
                visitor.enter(id);
            previous = id;
        }
        previous_ = previous;
    }

    template <class Visitor>
    void finish(const trace::TraceEnd& end, Visitor& visitor) {
        if (previous_ != nothing) visitor.end(previous_, end);
    }

  private:
    static constexpr auto nothing = trace::discontinuity;

    std::size_t value_count(trace::BlockId id) const {
        return id == trace::discontinuity ? 1 : blocks_.at(id).slots.size();
    }

    const trace::BlockTable& blocks_;
    trace::BlockId previous_ = nothing;
};

}  // namespace shadowprof::profile
