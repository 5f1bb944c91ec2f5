#include "recorded_trace.h"

#include "base/error.h"

namespace shadowprof::equivalence {

std::vector<ExecutedInstruction> instructions_of(const RecordedTrace& trace,
                                                 const trace::BlockTable& blocks, bool has_values) {
    std::vector<ExecutedInstruction> executed;
    std::span<const std::uint64_t> values{trace.values};
    const auto take = [&](std::size_t count) {
        SHADOWPROF_ASSERT(count <= values.size(), "a Trace with fewer values than slots");
        const auto taken = values.first(count);
        values = values.subspan(count);
        return taken;
    };
    bool after_discontinuity = false;
    for (const auto id : trace.blocks) {
        if (id == trace::discontinuity) {
            take(1);
            after_discontinuity = true;
            continue;
        }
        const auto& block = blocks.at(id);
        std::span<const trace::Slot> slots{block.slots};
        for (std::size_t i = 0; i < block.instructions.size(); ++i) {
            std::size_t count = 0;
            while (count < slots.size() && slots[count].instruction == i) ++count;
            executed.push_back({&block, i, std::exchange(after_discontinuity, false),
                                slots.first(count), take(has_values ? count : 0)});
            slots = slots.subspan(count);
        }
    }
    SHADOWPROF_ASSERT(values.empty(), "a Trace with more values than slots");
    return executed;
}

}  // namespace shadowprof::equivalence
