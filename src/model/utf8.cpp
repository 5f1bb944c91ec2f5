#include "model/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace shadowprof::model {

namespace {

struct Range {
    char32_t first, last;
};

// Sorted. Coarse on purpose: whole blocks of the Unicode tables.
constexpr std::array<Range, 12> zero_width{{
    {0x0300, 0x036f},
    {0x0483, 0x0489},
    {0x0591, 0x05bd},
    {0x0610, 0x061a},
    {0x064b, 0x065f},
    {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff},
    {0x200b, 0x200d},
    {0x20d0, 0x20ff},
    {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f},
    {0xe0100, 0xe01ef},
}};

constexpr std::array<Range, 9> double_width{{
    {0x1100, 0x115f},
    {0x2e80, 0x303e},
    {0x3041, 0xa4cf},
    {0xa960, 0xa97f},
    {0xac00, 0xd7a3},
    {0xf900, 0xfaff},
    {0xfe30, 0xfe6f},
    {0xff00, 0xff60},
    {0x1f300, 0x3fffd},
}};

constexpr std::array<Range, 5> direction_marks{{
    {0x061c, 0x061c},
    {0x200e, 0x200f},
    {0x2028, 0x202e},
    {0x2066, 0x2069},
    {0xfeff, 0xfeff},
}};

template <std::size_t n>
bool in(const std::array<Range, n>& table, char32_t c) {
    const auto after =
        std::upper_bound(table.begin(), table.end(), c,
                         [](char32_t value, const Range& range) { return value < range.first; });
    return after != table.begin() && c <= std::prev(after)->last;
}

}  // namespace

bool is_unprintable(char32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || in(direction_marks, c);
}

CodePoint next_code_point(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const std::uint8_t lead = byte(0);
    if (lead < 0x80) return {lead, 1, true};
    const CodePoint bad{replacement_character, 1, false};
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return bad;
    char32_t c = lead & (0x7fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return bad;
        c = (c << 6) | (byte(i) & 0x3fu);
    }
    const bool overlong = (length == 3 && c < 0x800) || (length == 4 && c < 0x10000);
    const bool surrogate = c >= 0xd800 && c <= 0xdfff;
    if (overlong || surrogate || c > 0x10ffff) return bad;
    return {c, length, true};
}

void append_utf8(std::string& to, char32_t c) {
    const auto put = [&](char32_t byte) { to += static_cast<char>(byte); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xc0 | (c >> 6));
        put(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        put(0xe0 | (c >> 12));
        put(0x80 | ((c >> 6) & 0x3f));
        put(0x80 | (c & 0x3f));
    } else {
        put(0xf0 | (c >> 18));
        put(0x80 | ((c >> 12) & 0x3f));
        put(0x80 | ((c >> 6) & 0x3f));
        put(0x80 | (c & 0x3f));
    }
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const auto next = next_code_point(text);
        if (!next.valid) return false;
        text.remove_prefix(next.bytes);
    }
    return true;
}

std::size_t columns_of(char32_t c) {
    if (c < 0x300) return 1;
    if (in(zero_width, c)) return 0;
    return in(double_width, c) ? 2 : 1;
}

std::size_t columns_of(std::string_view text) {
    std::size_t sum = 0;
    while (!text.empty()) {
        const auto next = next_code_point(text);
        sum += columns_of(next.code_point);
        text.remove_prefix(next.bytes);
    }
    return sum;
}

std::string printable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto next = next_code_point(text);
        const char32_t c = next.code_point;
        if (c == '\t')
            out += ' ';
        else
            append_utf8(out, is_unprintable(c) ? replacement_character : c);
        text.remove_prefix(next.bytes);
    }
    return out;
}

std::string printable_word(std::string_view text, std::string_view separators, char replacement) {
    auto word = printable(text);
    for (char& c : word)
        if (separators.find(c) != separators.npos) c = replacement;
    return word;
}

std::string shorten_end(std::string_view text, std::size_t columns) {
    if (columns_of(text) <= columns) return std::string(text);
    if (columns == 0) return {};
    std::string out;
    std::size_t used = 1;  // the ellipsis
    while (!text.empty()) {
        const auto next = next_code_point(text);
        if (used + columns_of(next.code_point) > columns) break;
        used += columns_of(next.code_point);
        out += text.substr(0, next.bytes);
        text.remove_prefix(next.bytes);
    }
    return out + "…";
}

std::string shorten_middle(std::string_view text, std::size_t columns) {
    const std::size_t wide = columns_of(text);
    if (wide <= columns) return std::string(text);
    if (columns < 3) return shorten_end(text, columns);
    const std::size_t front = columns / 2;  // with the ellipsis
    const std::size_t tail = columns - front;
    std::string out = shorten_end(text, front);
    std::size_t skip = wide - tail;
    while (!text.empty() && skip > 0) {
        const auto next = next_code_point(text);
        skip -= std::min(skip, columns_of(next.code_point));
        text.remove_prefix(next.bytes);
    }
    while (!text.empty() && columns_of(next_code_point(text).code_point) == 0)
        text.remove_prefix(next_code_point(text).bytes);
    return out.append(text);
}

std::string shorten_name(std::string_view text, std::size_t columns) {
    if (columns_of(text) <= columns) return std::string(text);
    // What follows the name has scopes of its own: "ns::f f.cpp:3 called from ns::g".
    std::size_t end = 0;
    for (int brackets = 0; end < text.size() && (text[end] != ' ' || brackets > 0); ++end)
        brackets += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    constexpr std::string_view scope = "::";
    auto left = columns_of(text);
    std::size_t passed = 0;
    for (auto at = text.find(scope); at < end; at = text.find(scope, passed)) {
        left -= columns_of(text.substr(passed, at + scope.size() - passed));
        passed = at + scope.size();
        if (left < columns) return "…" + std::string(text.substr(passed));
    }
    return shorten_middle(text, columns);
}

}  // namespace shadowprof::model
