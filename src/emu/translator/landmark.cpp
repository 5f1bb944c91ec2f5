#include "emu/translator/landmark.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shadowprof::emu::translator {

namespace {

constexpr std::uint64_t fewest_visits = 20;
// Nanoseconds.
constexpr double shortest_between_visits = 60, of_counting = 1.2;
constexpr std::uint8_t length_of_jump = 5;

// The gaps between the visits of an instruction, in instructions.
struct Gaps {
    std::uint64_t last = 0, visits = 0;
    double sum = 0, squares = 0;

    void visit(std::uint64_t at) {
        if (visits++ > 0) {
            const auto gap = static_cast<double>(at - last);
            sum += gap;
            squares += gap * gap;
        }
        last = at;
    }
    double mean() const { return sum / static_cast<double>(visits - 1); }
    double variance() const {
        return std::max(0.0, squares / static_cast<double>(visits - 1) - mean() * mean());
    }
};

// What one execution of a block or a segment comes by, after so many instructions.
struct Passage {
    std::vector<std::pair<Gaps*, std::uint64_t>> visits;
    std::uint64_t instructions = 0;

    void append(const Passage& other) {
        for (const auto& [gaps, after] : other.visits)
            visits.emplace_back(gaps, instructions + after);
        instructions += other.instructions;
    }
};

// No jump leads into the middle of a single instruction.
bool can_be_moved(const decoder::Instruction& instruction) {
    if (instruction.flow != decoder::Flow::next || instruction.length < length_of_jump)
        return false;
    const auto operands = instruction.operands();
    return std::none_of(operands.begin(), operands.end(), [](const decoder::Operand& operand) {
        return operand.kind == decoder::OperandKind::memory &&
               operand.memory.base.kind == decoder::RegisterKind::instruction_pointer;
    });
}

}  // namespace

std::optional<Landmark> choose_landmark(std::span<const trace::SegmentId> executed, double took,
                                        const trace::SegmentTable& segments, GuestCode& code) {
    std::unordered_map<trace::SegmentId, std::uint64_t> times;
    for (const auto segment : executed) ++times[segment];
    std::unordered_map<trace::BlockId, std::uint64_t> executions;
    for (const auto& [segment, count] : times)
        for (const auto block : segments.at(segment)) executions[block] += count;

    struct Candidate {
        const decoder::Instruction* instruction = nullptr;
        Gaps gaps;
    };
    std::unordered_map<std::uint64_t, Candidate> candidates;
    const auto most_visits = took / shortest_between_visits;
    for (const auto& [id, count] : executions) {
        const auto& block = code.block(id);
        if (count < fewest_visits || static_cast<double>(count) > most_visits ||
            code.may_change(block.start))
            continue;
        const auto movable =
            std::find_if(block.instructions.begin(), block.instructions.end(), can_be_moved);
        if (movable != block.instructions.end())
            candidates[movable->address.value].instruction = &*movable;
    }
    if (candidates.empty()) return {};

    // Blocks overlap: several may have the same instruction.
    std::unordered_map<trace::BlockId, Passage> through_block;
    for (const auto& [id, count] : executions) {
        auto& passage = through_block[id];
        for (const auto& instruction : code.block(id).instructions) {
            const auto found = candidates.find(instruction.address.value);
            if (found != candidates.end())
                passage.visits.emplace_back(&found->second.gaps, passage.instructions);
            ++passage.instructions;
        }
    }
    std::unordered_map<trace::SegmentId, Passage> through_segment;
    for (const auto& [segment, count] : times)
        for (const auto block : segments.at(segment))
            through_segment[segment].append(through_block.at(block));
    std::uint64_t at = 0;
    for (const auto segment : executed) {
        const auto& passage = through_segment.at(segment);
        for (const auto& [gaps, after] : passage.visits) gaps->visit(at + after);
        at += passage.instructions;
    }

    const Candidate* best = nullptr;
    double least_error = 1;
    const auto nanoseconds_each = took / static_cast<double>(at);
    for (const auto& [place, candidate] : candidates) {
        const auto& gaps = candidate.gaps;
        // Everywhere, and not in one place alone.
        if (gaps.visits < fewest_visits || gaps.sum < 0.8 * static_cast<double>(at)) continue;
        const auto counting = of_counting / (gaps.mean() * nanoseconds_each);
        const auto chance = gaps.variance() / (gaps.mean() * static_cast<double>(at));
        const auto error = counting * counting + chance;
        if (error > least_error || (error == least_error && best &&
                                    best->instruction->address < candidate.instruction->address))
            continue;
        least_error = error;
        best = &candidate;
    }
    if (!best) return {};
    const auto visits = static_cast<double>(best->gaps.visits);
    return Landmark{*best->instruction, static_cast<double>(at) / visits, took / visits};
}

}  // namespace shadowprof::emu::translator
