#include "languages/python/objects.h"

#include <algorithm>
#include <array>

namespace shadowprof::languages::python {

namespace {

constexpr std::uint64_t longest_name = 4096, longest_table = 1u << 20;

// PyASCIIObject::state
constexpr unsigned kind_shift = 2, kind_mask = 7;
constexpr std::uint32_t is_compact = 1u << 5, is_ascii = 1u << 6;

void append_utf8(std::string& text, std::uint32_t c) {
    const auto byte = [&](std::uint32_t b) { text += static_cast<char>(b); };
    if (c < 0x80) return byte(c);
    if (c < 0x800) {
        byte(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            byte(0xe0 | c >> 12);
        } else {
            byte(0xf0 | c >> 18);
            byte(0x80 | (c >> 12 & 0x3f));
        }
        byte(0x80 | (c >> 6 & 0x3f));
    }
    byte(0x80 | (c & 0x3f));
}

bool may_be_in_name(std::uint32_t c) {
    return c >= ' ' && c != 0x7f && c < 0x110000;
}

}  // namespace

std::uint64_t CodeFacts::hash() const {
    auto hash = combine_hashes(file.value, name.value);
    hash = combine_hashes(hash, lines.value);
    return combine_hashes(hash, first_line ^ instructions << 32);
}

std::optional<CodeFacts> code_facts(const Layout& layout, const Types& types,
                                    std::span<const std::byte> object) {
    const auto pointer = [&](std::uint64_t offset) { return field<Address>(object, offset); };
    if (object.size() < layout.code.size || pointer(layout.type) != types.code) return {};
    CodeFacts facts;
    facts.file = pointer(layout.code.file);
    facts.name =
        pointer(layout.code.qualified_name != 0 ? layout.code.qualified_name : layout.code.name);
    facts.lines = pointer(layout.code.lines);
    const auto first_line = field<std::int32_t>(object, layout.code.first_line);
    constexpr std::int32_t most_lines = 100'000'000;
    if (first_line < 0 || first_line > most_lines) return {};
    facts.first_line = static_cast<std::uint32_t>(first_line);
    constexpr std::uint64_t most_instructions = 1u << 24;
    if (layout.code.instructions != 0)
        facts.instructions = field<std::uint64_t>(object, layout.length);
    if (facts.instructions > most_instructions || !may_be_pointer(facts.file) ||
        !may_be_pointer(facts.name) || !may_be_pointer(facts.lines))
        return {};
    return facts;
}

std::optional<std::string> read_name(const Memory& memory, const Layout& layout, const Types& types,
                                     Address at) {
    std::array<std::byte, 128> header{};
    const auto size = std::min<std::uint64_t>(layout.text.ascii_size, header.size());
    if (!may_be_pointer(at) || !memory.read(at, std::span{header}.first(size))) return {};
    const auto state = field<std::uint32_t>(header, layout.text.state);
    const auto length = field<std::uint64_t>(header, layout.text.length);
    const std::uint64_t width = state >> kind_shift & kind_mask;
    if (field<Address>(header, layout.type) != types.text || !(state & is_compact) || length == 0 ||
        length > longest_name || (width != 1 && width != 2 && width != 4) ||
        ((state & is_ascii) && width != 1))
        return {};
    std::vector<std::byte> characters(length * width);
    const auto begin = state & is_ascii ? layout.text.ascii_size : layout.text.compact_size;
    if (!memory.read(at + begin, characters)) return {};
    std::string name;
    for (std::uint64_t n = 0; n < length; ++n) {
        std::uint32_t c = 0;
        std::memcpy(&c, characters.data() + n * width, width);
        if (!may_be_in_name(c) || ((state & is_ascii) && c >= 0x80)) return {};
        append_utf8(name, c);
    }
    return name;
}

std::optional<std::vector<std::byte>> read_bytes(const Memory& memory, const Layout& layout,
                                                 const Types& types, Address at) {
    std::array<std::byte, 64> header{};
    const auto size = std::min<std::uint64_t>(layout.bytes_begin, header.size());
    if (!may_be_pointer(at) || !memory.read(at, std::span{header}.first(size))) return {};
    const auto length = field<std::uint64_t>(header, layout.length);
    if (field<Address>(header, layout.type) != types.bytes || length > longest_table) return {};
    std::vector<std::byte> bytes(length);
    if (!bytes.empty() && !memory.read(at + layout.bytes_begin, bytes)) return {};
    return bytes;
}

}  // namespace shadowprof::languages::python
