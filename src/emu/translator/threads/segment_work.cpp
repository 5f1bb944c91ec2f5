#include "emu/translator/threads/segment_work.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace shadowprof::emu::translator {

namespace {

// Where the numbers lie in a word. So many words can be added before one number runs into the next.
constexpr unsigned bits_of_few = 18, indirect_at = bits_of_few, instructions_at = 2 * bits_of_few;
constexpr std::uint64_t mask_of_few = (1u << bits_of_few) - 1;
constexpr std::size_t most_at_a_time = 1024;
// Of a segment that was not executed yet.
constexpr std::uint64_t is_new = std::uint64_t{1} << 63;
constexpr std::size_t most_blocks = mask_of_few / most_at_a_time;
static_assert((most_blocks * trace::most_instructions_in_block * most_at_a_time) >>
                  (63 - instructions_at) ==
              0);

std::uint64_t word_of(std::span<const trace::BlockId> blocks, const GuestCode& code) {
    using enum trace::BlockExit;
    SHADOWPROF_ASSERT(blocks.size() <= most_blocks, std::to_string(blocks.size()));
    std::uint64_t word = blocks.size();
    for (const auto id : blocks) {
        const auto& block = code.block(id);
        const auto exit = block.exit;
        const bool is_indirect = exit == indirect_jump || exit == indirect_call || exit == return_;
        word += std::uint64_t{is_indirect} << indirect_at;
        word += std::uint64_t{block.instructions.size()} << instructions_at;
    }
    return word;
}

}  // namespace

void SegmentWork::know_segments() {
    for (auto n = static_cast<std::uint32_t>(known_.size()); n < segments_.size(); ++n) {
        const auto blocks = segments_.at(trace::SegmentId{n});
        std::size_t arguments = 0;
        for (const auto block : blocks) arguments += code_.block(block).arguments();
        known_.push_back(word_of(blocks, code_) | is_new);
        arguments_.push_back(static_cast<std::uint16_t>(arguments));
    }
}

std::optional<Work> SegmentWork::of(std::span<const trace::SegmentId> executed) {
    know_segments();
    Work work;
    while (!executed.empty()) {
        const auto part = executed.first(std::min(executed.size(), most_at_a_time));
        std::uint64_t sum = 0, any = 0;
        for (const auto segment : part) {
            const auto number = static_cast<std::size_t>(segment);
            if (number >= known_.size()) return {};
            sum += known_[number];
            any |= known_[number];
        }
        if (any & is_new) sum = see_for_the_first_time(part);
        work += {.blocks = sum & mask_of_few,
                 .instructions = sum >> instructions_at,
                 .indirect = sum >> indirect_at & mask_of_few,
                 .segments = part.size()};
        executed = executed.subspan(part.size());
    }
    return work;
}

std::size_t SegmentWork::count_new(std::span<const trace::SegmentId> executed,
                                   std::uint64_t reader) {
    last_reader_.resize(known_.size());
    std::size_t count = 0;
    for (const auto segment : executed)
        count += std::exchange(last_reader_[static_cast<std::size_t>(segment)], reader) != reader;
    return count;
}

// Returns their sum.
std::uint64_t SegmentWork::see_for_the_first_time(std::span<const trace::SegmentId> executed) {
    std::uint64_t sum = 0;
    for (const auto segment : executed) {
        auto& word = known_[static_cast<std::size_t>(segment)];
        if (word & is_new) executed_.was_executed(code_.block(segments_.at(segment).front()).place);
        word &= ~is_new;
        sum += word;
    }
    return sum;
}

}  // namespace shadowprof::emu::translator
