// A Trace kept whole, and read instruction by instruction.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "trace/block.h"
#include "trace/segment.h"
#include "trace/trace.h"

namespace shadowprof::equivalence {

class RecordedTrace : public trace::TraceSink {
  public:
    RecordedTrace() = default;
    // For engines that write segments.
    explicit RecordedTrace(const trace::SegmentTable& table) : segments_(&table) {}

    void begin(trace::TraceStart) override {}
    void chunk(trace::TraceChunk chunk) override {
        blocks.insert(blocks.end(), chunk.blocks.begin(), chunk.blocks.end());
        values.insert(values.end(), chunk.values.begin(), chunk.values.end());
    }
    void segments(trace::SegmentChunk chunk) override {
        SHADOWPROF_ASSERT(segments_ != nullptr, "segments from an engine that has none");
        this->chunk(trace::expand(chunk, *segments_));
    }
    void end(trace::TraceEnd end) override { end_reason = std::move(end.reason); }
    void end_sample(trace::SampleId) override {}

    std::vector<trace::BlockId> blocks;
    std::vector<std::uint64_t> values;
    std::string end_reason;

  private:
    const trace::SegmentTable* segments_ = nullptr;
};

struct ExecutedInstruction {
    const trace::Block* block = nullptr;
    std::size_t index = 0;  // in the block
    bool after_discontinuity = false;
    std::span<const trace::Slot> slots;
    std::span<const std::uint64_t> values;  // one a slot, if the Trace has values

    const decoder::Instruction& instruction() const { return block->instructions[index]; }
};

// They refer to both arguments.
std::vector<ExecutedInstruction> instructions_of(const RecordedTrace& trace,
                                                 const trace::BlockTable& blocks,
                                                 bool has_values = true);

}  // namespace shadowprof::equivalence
