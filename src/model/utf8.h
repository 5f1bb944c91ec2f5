// UTF-8, and how wide text is on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shadowprof::model {

inline constexpr char32_t replacement_character = 0xfffd;

struct CodePoint {
    char32_t code_point = 0;
    std::size_t bytes = 0;
    bool valid = false;  // if not: one byte, and the replacement character
};

// `text` is not empty. Overlong forms, surrogates and what is beyond U+10FFFF are not valid.
CodePoint next_code_point(std::string_view text);
void append_utf8(std::string& to, char32_t code_point);
bool is_utf8(std::string_view text);

// Columns on a terminal: 0 for combining marks, 2 for wide East Asian characters and emoji.
std::size_t columns_of(char32_t code_point);
std::size_t columns_of(std::string_view text);

// Control characters, which could drive the terminal or begin a line, and marks that turn the
// direction of writing.
bool is_unprintable(char32_t code_point);
// Text from files and programs, safe to print in a line: what is not printable becomes U+FFFD, and
// a tab a space. Whatever was not made by us passes through here on its way to a terminal or into a
// format of lines. JSON escapes it instead.
std::string printable(std::string_view text);
// The same as a word of a format of lines: separators of the format are replaced as well.
std::string printable_word(std::string_view text, std::string_view separators, char replacement);

// At most `columns` wide: what does not fit is cut from the middle ("…"), because both ends of
// a name tell names apart. Takes printable text.
std::string shorten_middle(std::string_view text, std::size_t columns);
// Of a name in scopes ("ns::Class::function") the end tells more than the beginning: scopes are cut
// as far as that is enough. Other text is cut from the middle.
std::string shorten_name(std::string_view text, std::size_t columns);
std::string shorten_end(std::string_view text, std::size_t columns);

}  // namespace shadowprof::model
