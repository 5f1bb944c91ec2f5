#include "languages/ruby/line_table.h"

#include <bit>

#include "languages/structures.h"

namespace shadowprof::languages::ruby {

namespace {

// The first positions have how many pieces begin up to them, in seven bits each, nine to a word.
constexpr std::uint32_t direct = 54, per_word = 9, bits_of_rank = 7;
// The others have blocks: how many begin before the block, before each of its words but the first,
// in nine bits each, and a bit for each position.
constexpr std::uint32_t per_block = 512, per_bits = 64, bits_of_small_rank = 9;
constexpr std::size_t block_size = 80, small_ranks_at = 8, bits_at = 16;

std::uint64_t pieces_until(std::span<const std::byte> index, std::uint32_t position) {
    if (position < direct)
        return field<std::uint64_t>(index, position / per_word * sizeof(std::uint64_t)) >>
                   (position % per_word * bits_of_rank) &
               ((1u << bits_of_rank) - 1);
    const auto after = position - direct;
    const auto block = direct / per_word * sizeof(std::uint64_t) + after / per_block * block_size;
    const auto word = after % per_block / per_bits, bit = after % per_bits;
    const auto before = word == 0 ? 0
                                  : field<std::uint64_t>(index, block + small_ranks_at) >>
                                            ((word - 1) * bits_of_small_rank) &
                                        ((1u << bits_of_small_rank) - 1);
    const auto bits = field<std::uint64_t>(index, block + bits_at + word * sizeof(std::uint64_t));
    return field<std::uint32_t>(index, block) + before +
           static_cast<std::uint64_t>(std::popcount(bits << (per_bits - 1 - bit)));
}

}  // namespace

std::size_t index_size(std::uint32_t words) {
    if (words < direct) return (words + per_word - 1) / per_word * sizeof(std::uint64_t);
    return direct / per_word * sizeof(std::uint64_t) +
           (words - direct + per_block - 1) / per_block * block_size;
}

std::optional<std::uint32_t> line_at(std::span<const std::byte> lines,
                                     std::span<const std::byte> index, std::uint32_t position) {
    const auto count = lines.size() / line_entry_size;
    if (count == 0) return {};
    const auto pieces = count == 1 ? 1 : pieces_until(index, position);
    if (pieces == 0 || pieces > count) return {};
    const auto line = field<std::int32_t>(lines, (pieces - 1) * line_entry_size);
    if (line <= 0) return {};
    return static_cast<std::uint32_t>(line);
}

}  // namespace shadowprof::languages::ruby
