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

// Where a section is, and what is in it.
struct Contents {
    std::uint64_t begin = 0;
    std::vector<std::byte> bytes;
};
Contents contents_of(const ElfImage& image, std::string_view name) {
    for (const auto& section : image.sections())
        if (section.name == name)
            return {section.header.sh_addr,
                    image.bytes(section.header.sh_addr, section.header.sh_size)};
    return {};
}

}  // namespace

std::vector<Function> unwind_ranges(const ElfImage& image) {
    // version, three encodings, where .eh_frame is, how many entries; then the entries: where
    // a function begins and where its description is, both relative to this table.
    const auto [base, table] = contents_of(image, ".eh_frame_hdr");
    if (table.size() < 12 || table[2] != unsigned_4 || table[3] != signed_4_from_table) return {};
    const auto absolute = [&, base = base, &table = table](std::size_t at) {
        return base + static_cast<std::uint64_t>(std::int64_t{read<std::int32_t>(table, at)});
    };
    const auto [descriptions_at, descriptions] = contents_of(image, ".eh_frame");
    std::vector<Function> found;
    const std::size_t count =
        std::min<std::size_t>(read<std::uint32_t>(table, 8), (table.size() - 12) / 8);
    for (std::size_t i = 0; i < count; ++i) {
        const auto begin = absolute(12 + 8 * i), description = absolute(16 + 8 * i);
        if (description < descriptions_at || description - descriptions_at >= descriptions.size())
            continue;
        // Length and CIE offset, 4 bytes each, then where the function begins and how long it is.
        const auto size = read<std::uint32_t>(descriptions, description - descriptions_at + 12);
        if (size != 0) found.push_back({{}, begin, begin + size});
    }
    return found;
}

}  // namespace shadowprof::report
