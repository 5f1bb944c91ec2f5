#include "profile/context/stretches.h"

#include <algorithm>

#include "profile/common/transitions.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

bool is_stub(const trace::Block& block) {
    if (block.exit != trace::BlockExit::indirect_jump ||
        block.instructions.size() > tuning::longest_stub)
        return false;
    return std::ranges::any_of(block.last().operands(), [](const decoder::Operand& operand) {
        return operand.kind == decoder::OperandKind::memory && operand.memory.is_rip_relative();
    });
}

bool goes_on(const Stretch& from, const Stretch& to) {
    return from.stays && from.last_function == to.function;
}

}  // namespace

// A place of which nothing is known is said to be a function of its own.
FunctionId Stretches::function_of(const trace::Location& place) {
    const auto entry = functions_.function_of(place);
    if (entry == place && functions_.function_of(place + 1) != place) return no_function;
    return tree_.function_at(entry);
}

void Stretches::learn(trace::BlockId id) {
    const auto number = static_cast<std::uint32_t>(id);
    if (number >= of_blocks_.size()) of_blocks_.resize(std::max(blocks_.size(), number + 1));
    const auto& block = blocks_.at(id);
    auto& stretch = of_blocks_[number];
    stretch.begin = block.start;
    stretch.end = block.end();
    stretch.first = id;
    stretch.function = function_of(block.place);
    stretch.last_function =
        block.instructions.size() == 1 ? stretch.function : function_of(block.place_of_last());
    stretch.instructions = static_cast<std::uint32_t>(block.instructions.size());
    stretch.arguments = static_cast<std::uint32_t>(block.arguments());
    stretch.begins_with_arguments = stretch.arguments > 0;
    stretch.exit = block.exit;
    stretch.is_entry = stretch.function != no_function && is_entry(block.place);
    stretch.is_stub = is_stub(block);
    stretch.stays =
        !is_call(block.exit) && block.exit != trace::BlockExit::return_ && !stretch.is_stub;
}

void Stretches::learn(trace::SegmentId id, const trace::SegmentTable& segments) {
    const auto number = static_cast<std::uint32_t>(id);
    if (number >= of_segments_.size()) of_segments_.resize(std::max(segments.size(), number + 1));
    const auto at = static_cast<std::uint32_t>(stretches_.size());
    for (const auto block : segments.at(id)) {
        const auto& next = of(block);
        if (stretches_.size() == at || !goes_on(stretches_.back(), next) || next.is_stub) {
            stretches_.push_back(next);
            continue;
        }
        auto& stretch = stretches_.back();
        stretch.instructions += next.instructions;
        stretch.arguments += next.arguments;
        stretch.end = next.end;
        stretch.exit = next.exit;
        stretch.last_function = next.last_function;
        stretch.stays = next.stays;
    }
    of_segments_[number] = {at, static_cast<std::uint32_t>(stretches_.size() - at)};
}

}  // namespace shadowprof::profile
