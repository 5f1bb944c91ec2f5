#include "emu/translator/native_rate/landmark.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emu/translator/emitter.h"
#include "emu/tuning.h"

namespace shadowprof::emu::translator {

namespace {

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

// The candidates that one execution of a block or a segment passes, each after so many
// instructions.
struct Passage {
    std::vector<std::pair<Gaps*, std::uint64_t>> visits;
    std::uint64_t instructions = 0;

    void append(const Passage& other) {
        for (const auto& [gaps, after] : other.visits)
            visits.emplace_back(gaps, instructions + after);
        instructions += other.instructions;
    }
};

bool can_be_moved(const decoder::Instruction& instruction) {
    if (instruction.flow != decoder::Flow::next || instruction.length < Emitter::jump_length)
        return false;
    const auto operands = instruction.operands();
    return std::none_of(operands.begin(), operands.end(), [](const decoder::Operand& operand) {
        return operand.kind == decoder::OperandKind::memory && operand.memory.is_rip_relative();
    });
}

// Whether control reaches the instruction only at its start. A jump may lead into the middle of an
// instruction: past a lock prefix, as C libraries do while there is one thread (that jump may not
// have been seen yet), or because the author uses the same bytes for two instructions.
bool is_entered_at_its_start(const decoder::Instruction& instruction, GuestCode& code) {
    constexpr std::byte lock_prefix{0xf0};
    std::byte before{};
    return !instruction.lock && code.has_no_other(instruction) &&
           code.read_code(instruction.address - 1, {&before, 1}) == 1 && before != lock_prefix;
}

struct Candidate {
    const decoder::Instruction* instruction = nullptr;
    std::uint64_t visits = 0;
    Gaps gaps;
};
using Executions = std::unordered_map<trace::BlockId, std::uint64_t>;

// First come those whose number of visits is closest to what is wanted.
std::vector<Candidate> candidates_of(const Executions& executions, double most_visits,
                                     GuestCode& code) {
    // Blocks overlap, so several may have the same instruction.
    std::unordered_map<std::uint64_t, Candidate> movable;
    for (const auto& [id, count] : executions) {
        const auto& block = code.block(id);
        if (code.may_change(block.start)) continue;
        for (const auto& instruction : block.instructions) {
            if (!can_be_moved(instruction)) continue;
            auto& candidate = movable[instruction.address.value];
            candidate.instruction = &instruction;
            candidate.visits += count;
        }
    }
    std::vector<Candidate> candidates;
    for (const auto& [place, candidate] : movable)
        if (candidate.visits >= tuning::fewest_visits_of_landmark &&
            static_cast<double>(candidate.visits) <= most_visits)
            candidates.push_back(candidate);
    const auto distance = [](const Candidate& candidate) {
        return std::abs(
            std::log(static_cast<double>(candidate.visits) / tuning::good_visits_of_landmark));
    };
    std::sort(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
        return std::pair{distance(a), a.instruction->address} <
               std::pair{distance(b), b.instruction->address};
    });
    std::vector<Candidate> best;
    for (const auto& candidate : candidates) {
        if (best.size() == tuning::most_candidates_for_landmark) break;
        if (is_entered_at_its_start(*candidate.instruction, code)) best.push_back(candidate);
    }
    return best;
}

}  // namespace

std::optional<Landmark> choose_landmark(std::span<const trace::SegmentId> executed, double took,
                                        const trace::SegmentTable& segments, GuestCode& code) {
    std::unordered_map<trace::SegmentId, std::uint64_t> times;
    for (const auto segment : executed) ++times[segment];
    Executions executions;
    for (const auto& [segment, count] : times)
        for (const auto block : segments.at(segment)) executions[block] += count;
    auto candidates = candidates_of(executions, took / tuning::shortest_between_visits, code);
    if (candidates.empty()) return {};

    std::unordered_map<std::uint64_t, Gaps*> gaps_at;
    for (auto& candidate : candidates)
        gaps_at[candidate.instruction->address.value] = &candidate.gaps;
    std::unordered_map<trace::BlockId, Passage> through_block;
    for (const auto& [id, count] : executions) {
        auto& passage = through_block[id];
        for (const auto& instruction : code.block(id).instructions) {
            const auto found = gaps_at.find(instruction.address.value);
            if (found != gaps_at.end())
                passage.visits.emplace_back(found->second, passage.instructions);
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
    for (const auto& candidate : candidates) {
        const auto& gaps = candidate.gaps;
        // The visits must be spread over the whole, and not be in one place alone.
        if (gaps.sum < tuning::part_with_landmark * static_cast<double>(at)) continue;
        const auto counting = tuning::nanoseconds_of_counting / (gaps.mean() * nanoseconds_each);
        const auto chance = gaps.variance() / (gaps.mean() * static_cast<double>(at));
        const auto error = counting * counting + chance;
        if (error >= least_error) continue;
        least_error = error;
        best = &candidate;
    }
    if (!best) return {};
    const auto visits = static_cast<double>(best->gaps.visits);
    return Landmark{*best->instruction, static_cast<double>(at) / visits, took / visits};
}

}  // namespace shadowprof::emu::translator
