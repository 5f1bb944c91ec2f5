#include "emu/translator/unit.h"

#include <cstring>

#include "emu/tuning.h"

namespace shadowprof::emu::translator {

static_assert(sizeof(Mark) == 8 && tuning::most_blocks_followed <= 256);

namespace {

// Most marks differ from the one before only in that they are the next instruction's, a few bytes
// later: of these there is the distance. Of others there is everything, behind a distance that no
// such mark has.
constexpr std::uint8_t in_full = 0xff;

bool is_next(const Mark& mark, const Mark& before) {
    return mark.offset - before.offset < in_full && mark.block == before.block &&
           mark.instruction == before.instruction + 1 &&
           mark.stream_register == before.stream_register && mark.borrowed == before.borrowed;
}

}  // namespace

std::vector<std::uint8_t> packed(std::span<const Mark> marks) {
    std::size_t size = 0;
    const auto next = [&](std::size_t i) { return i > 0 && is_next(marks[i], marks[i - 1]); };
    for (std::size_t i = 0; i < marks.size(); ++i) size += next(i) ? 1 : 1 + sizeof(Mark);
    std::vector<std::uint8_t> bytes(size);
    auto* to = bytes.data();
    for (std::size_t i = 0; i < marks.size(); ++i) {
        *to++ =
            next(i) ? static_cast<std::uint8_t>(marks[i].offset - marks[i - 1].offset) : in_full;
        if (next(i)) continue;
        std::memcpy(to, &marks[i], sizeof(Mark));
        to += sizeof(Mark);
    }
    return bytes;
}

Mark mark_at(std::span<const std::uint8_t> packed, std::uint64_t offset) {
    Mark mark;
    for (std::size_t at = 0; at < packed.size();) {
        auto next = mark;
        if (packed[at] == in_full) {
            std::memcpy(&next, &packed[at + 1], sizeof next);
            at += 1 + sizeof next;
        } else {
            next.offset += packed[at++];
            ++next.instruction;
        }
        if (next.offset > offset) break;
        mark = next;
    }
    return mark;
}

}  // namespace shadowprof::emu::translator
