#include "report/symbols/unwind_ranges.h"

#include <cstring>

namespace shadowprof::report {

namespace {

// Pointer encodings (LSB, "DWARF extensions"). x86-64 compilers and linkers use no others in these
// places.
constexpr std::byte unsigned_4{0x03}, signed_4_from_table{0x3b};

template <class Number>
Number read(const std::vector<std::byte>& data, std::size_t at) {
    Number n{};
    if (at + sizeof n <= data.size()) std::memcpy(&n, data.data() + at, sizeof n);
    return n;
}

// Of the frame description at that address: length and CIE offset, 4 bytes each, then where the
// function begins and how long it is.
std::uint64_t function_size(const ElfImage& image, std::uint64_t description) {
    const auto fields = image.bytes(description, 16);
    return read<std::uint32_t>(fields, 12);
}

}  // namespace

std::vector<Function> unwind_ranges(const ElfImage& image) {
    std::vector<Function> found;
    for (const auto& section : image.sections()) {
        if (section.name != ".eh_frame_hdr") continue;
        // version, three encodings, where .eh_frame is, how many entries; then the entries: where
        // a function begins and where its description is, both relative to this table.
        const auto base = section.header.sh_addr;
        const auto table = image.bytes(base, section.header.sh_size);
        if (table.size() < 12 || table[2] != unsigned_4 || table[3] != signed_4_from_table)
            return found;
        const auto absolute = [&](std::size_t at) {
            return base + static_cast<std::uint64_t>(std::int64_t{read<std::int32_t>(table, at)});
        };
        const std::size_t count =
            std::min<std::size_t>(read<std::uint32_t>(table, 8), (table.size() - 12) / 8);
        for (std::size_t i = 0; i < count; ++i) {
            const auto begin = absolute(12 + 8 * i);
            const auto size = function_size(image, absolute(16 + 8 * i));
            if (size != 0) found.push_back({{}, begin, begin + size});
        }
    }
    return found;
}

}  // namespace shadowprof::report
