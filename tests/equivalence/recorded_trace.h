// A Trace kept whole, and read instruction by instruction.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/block.h"
#include "trace/trace.h"

namespace shadowprof::equivalence {

class RecordedTrace : public trace::TraceSink {
  public:
    void begin(trace::TraceStart) override {}
    void chunk(trace::TraceChunk chunk) override {
        blocks.insert(blocks.end(), chunk.blocks.begin(), chunk.blocks.end());
        values.insert(values.end(), chunk.values.begin(), chunk.values.end());
    }
    void end(trace::TraceEnd end) override { end_reason = std::move(end.reason); }
    void end_sample(trace::SampleId) override {}

    std::vector<trace::BlockId> blocks;
    std::vector<std::uint64_t> values;
    std::string end_reason;
};

struct ExecutedInstruction {
    const trace::Block* block = nullptr;
    std::size_t index = 0;  // in the block
    bool after_discontinuity = false;
    std::span<const trace::Slot> slots;
    std::span<const std::uint64_t> values;  // one a slot

    const decoder::Instruction& instruction() const { return block->instructions[index]; }
};

// They refer to both arguments.
std::vector<ExecutedInstruction> instructions_of(const RecordedTrace& trace,
                                                 const trace::BlockTable& blocks);

}  // namespace shadowprof::equivalence
