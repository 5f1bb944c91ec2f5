#include "proc/unwind_table.h"

#include <elf.h>

#include <algorithm>
#include <array>

namespace shadowprof::proc {

namespace {

constexpr std::uint64_t entry_size = 8, entries_begin = 12;

// .eh_frame_hdr of all usual linkers: encodings, the number of entries, and a sorted table of where
// functions begin and where their descriptions are, both counted from the header on.
constexpr std::array<std::uint8_t, 4> usual_header{1, 0x1b, 0x03, 0x3b};

}  // namespace

UnwindTable::UnwindTable(const MappedModule& module, const Memory& memory) : memory_(memory) {
    const auto header = memory_.read_as<Elf64_Ehdr>(module.range.begin);
    if (!header || !std::equal(ELFMAG, ELFMAG + SELFMAG, header->e_ident)) return;
    for (unsigned n = 0; n < header->e_phnum; ++n) {
        const auto segment = memory_.read_as<Elf64_Phdr>(module.range.begin + header->e_phoff +
                                                         n * sizeof(Elf64_Phdr));
        if (!segment || segment->p_type != PT_GNU_EH_FRAME) continue;
        table_ = Address{module.bias + segment->p_vaddr};
        if (memory_.read_as<std::array<std::uint8_t, 4>>(table_) == usual_header)
            entries_ = memory_.read_as<std::uint32_t>(table_ + 8).value_or(0);
    }
}

Address UnwindTable::entry_begin(std::uint32_t entry) const {
    const auto offset =
        memory_.read_as<std::int32_t>(table_ + entries_begin + entry * entry_size).value_or(0);
    return table_ + static_cast<std::uint64_t>(std::int64_t{offset});
}

std::optional<AddressRange> UnwindTable::function_at(Address at) const {
    std::uint32_t before = 0, after = entries_;  // [before] begins before it, [after] does not
    if (entries_ == 0 || at < entry_begin(0)) return {};
    while (after - before > 1) {
        const auto middle = before + (after - before) / 2;
        (entry_begin(middle) <= at ? before : after) = middle;
    }
    const auto offset =
        memory_.read_as<std::int32_t>(table_ + entries_begin + before * entry_size + 4);
    if (!offset) return {};
    // Two words, then where it begins, counted from here, and its size.
    const auto description = table_ + static_cast<std::uint64_t>(std::int64_t{*offset});
    const auto size = memory_.read_as<std::uint32_t>(description + 12);
    const auto begin = entry_begin(before);
    if (!size || at - begin >= *size) return {};
    return AddressRange{begin, begin + *size};
}

}  // namespace shadowprof::proc
