// Programs and Traces made by hand: blocks whose instructions are four bytes long and say only what
// profilers look at, and Traces through them that can be cut into chunks anywhere.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "profile/call/call_section.h"
#include "profile/caller/caller_section.h"
#include "profile/common/profiler.h"
#include "profile/context/context_section.h"
#include "profile/edge/edge_section.h"
#include "profile/latency/latency_section.h"
#include "profile/method/method_section.h"
#include "profile/path/path_section.h"
#include "profile/value/value_section.h"
#include "trace/block.h"
#include "trace/trace.h"

namespace shadowprof::profile {

using trace::BlockExit;
using trace::BlockId;

inline constexpr trace::ModuleId program_module{1};

inline Location at(std::uint64_t address, trace::ModuleId module = program_module) {
    return {module, address, 0};
}

class TestProgram {
  public:
    static constexpr std::uint64_t instruction_length = 4;

    // `values` slots are of the block's first instruction's operands 0, 1, …
    BlockId block(std::uint64_t start, std::size_t instructions, BlockExit exit,
                  std::uint64_t target = 0, std::size_t values = 0,
                  trace::ModuleId module = program_module, std::uint8_t bits = 64) {
        trace::Block block;
        block.exit = exit;
        block.start = Address{start};
        block.place = at(start, module);
        for (std::size_t i = 0; i < instructions; ++i) {
            decoder::Instruction instruction;
            instruction.address = block.start + i * instruction_length;
            instruction.length = instruction_length;
            block.instructions.push_back(instruction);
        }
        block.instructions.back().target = Address{target};
        for (std::size_t i = 0; i < values; ++i)
            block.slots.push_back(
                {trace::Capture::destination_values, 0, static_cast<std::uint8_t>(i), bits});
        return table.publish(std::move(block)).id;
    }

    trace::BlockTable table;
};

// What one thread did, in one piece.
struct TestTrace {
    trace::TraceStart start;
    trace::TraceChunk all;
    trace::TraceEnd end;

    explicit TestTrace(std::uint32_t sample = 0, std::uint32_t trace = 0) {
        start.sample = trace::SampleId{sample};
        start.trace = all.trace = end.trace = trace::TraceId{trace};
        end.reason = "sample size";
    }

    TestTrace& run(BlockId block, std::vector<std::uint64_t> values = {}) {
        all.blocks.push_back(block);
        all.values.insert(all.values.end(), values.begin(), values.end());
        return *this;
    }
    TestTrace& run(const std::vector<BlockId>& blocks) {
        for (const auto block : blocks) run(block);
        return *this;
    }
    TestTrace& interrupt(std::uint64_t continuation, const trace::StackMove& move = {}) {
        return interrupt(continuation, at(continuation), move);
    }
    TestTrace& interrupt(std::uint64_t continuation, const Location& place,
                         const trace::StackMove& move = {}) {
        all.blocks.push_back(trace::discontinuity);
        all.values.push_back(continuation);
        all.continuation_places.push_back(place);
        all.stack_moves.push_back(move);
        return *this;
    }
    TestTrace& from_thread_start() {
        start.from_thread_start = true;
        return *this;
    }
    TestTrace& stop_before(std::uint64_t continuation) {
        return stop_before(continuation, at(continuation));
    }
    TestTrace& stop_before(std::uint64_t continuation, const Location& place) {
        end.continuation = Address{continuation};
        end.continuation_place = place;
        return *this;
    }
    TestTrace& exit() {
        end.thread_exited = true;
        return *this;
    }

    // In chunks of that many blocks; the first one shorter, so that every boundary can be tried.
    std::vector<trace::TraceChunk> chunks(const trace::BlockTable& table, std::size_t first,
                                          std::size_t size) const {
        std::vector<trace::TraceChunk> chunks(1);
        std::size_t values = 0, places = 0, room = first;
        for (const auto id : all.blocks) {
            if (room-- == 0) {
                chunks.emplace_back();
                room = size - 1;
            }
            auto& chunk = chunks.back();
            chunk.trace = all.trace;
            chunk.blocks.push_back(id);
            const auto count = id == trace::discontinuity ? 1 : table.at(id).slots.size();
            for (std::size_t i = 0; i < count; ++i) chunk.values.push_back(all.values[values++]);
            if (id != trace::discontinuity) continue;
            chunk.stack_moves.push_back(all.stack_moves[places]);
            chunk.continuation_places.push_back(all.continuation_places[places++]);
        }
        return chunks;
    }
};

inline void read(Profiler& profiler, const TestTrace& trace) {
    const auto reader = profiler.open(trace.start);
    reader->digest(trace.all);
    reader->finish(trace.end);
}

inline Hotlists hotlists_of(Profiler& profiler, const TestTrace& trace) {
    read(profiler, trace);
    profiler.end_sample(trace.start.sample, 1);
    Hotlists lists;
    profiler.yield(lists, Seen::samples);
    return lists;
}

template <class Entries>
std::uint64_t sum_of_counts(const Entries& entries) {
    std::uint64_t sum = 0;
    for (const auto& entry : entries) sum += entry.statistics.count;
    return sum;
}

// Functions that begin at multiples of `size`; nothing is known of other modules.
class EvenlySpacedFunctions : public FunctionMap {
  public:
    explicit EvenlySpacedFunctions(std::uint64_t size) : size_(size) {}
    Location function_of(Location location) override {
        if (location.module == program_module) location.offset -= location.offset % size_;
        return location;
    }

  private:
    std::uint64_t size_;
};

}  // namespace shadowprof::profile
