#include "model/json_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "model/utf8.h"

namespace shadowprof::model {

namespace {

constexpr std::size_t deepest_skipped = 64;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

}  // namespace

void JsonCursor::fail(const std::string& why) const {
    const auto line =
        std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw JsonError(at_ >= text_.size() ? why + ", but the file ends there"
                                        : fmt::format("line {}: {}", line + 1, why));
}

void JsonCursor::fail_twice(const std::string& key) const {
    fail(fmt::format("\"{}\" twice in one object", shorten_end(key, 60)));
}

void JsonCursor::fail_missing(std::string_view key) const {
    fail(fmt::format("\"{}\" is missing", key));
}

void JsonCursor::skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
        ++at_;
}

bool JsonCursor::take_if(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
}

void JsonCursor::expect(char c, const char* what) {
    if (!take_if(c)) fail(fmt::format("expected {}", what));
}

bool JsonCursor::take_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
}

// No name, line or argument that we write is that long, and each is shown in many places.
constexpr std::size_t longest_text = 1 << 20;

std::string JsonCursor::text() {
    expect('"', "a string");
    std::string out;
    for (;;) {
        const std::size_t plain = at_;
        while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
               static_cast<unsigned char>(text_[at_]) >= 0x20)
            ++at_;
        const std::string_view run = text_.substr(plain, at_ - plain);
        if (out.size() + run.size() > longest_text) fail("a text of more than 1 MiB");
        if (!is_utf8(run)) fail("a string that is not UTF-8");
        out += run;
        if (at_ >= text_.size() || static_cast<unsigned char>(text_[at_]) < 0x20)
            fail("expected the end of a string");
        if (text_[at_++] == '"') return out;
        append_escape(out);
    }
}

std::uint32_t JsonCursor::four_hex_digits() {
    std::uint32_t value = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() < 4 || end != digits.data() + 4) fail("expected four hexadecimal digits");
    at_ += 4;
    return value;
}

void JsonCursor::append_escape(std::string& to) {
    static constexpr std::string_view names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (at_ >= text_.size()) fail("expected the end of a string");
    const char c = text_[at_++];
    if (const auto i = names.find(c); i != names.npos) {
        to += meanings[i];
        return;
    }
    if (c != 'u') fail("an unknown escape in a string");
    char32_t code_point = four_hex_digits();
    if (code_point >= 0xd800 && code_point < 0xdc00 && text_.substr(at_, 2) == "\\u") {
        at_ += 2;
        const char32_t low = four_hex_digits();
        if (low < 0xdc00 || low > 0xdfff) fail("half of a surrogate pair");
        code_point = 0x10000 + ((code_point - 0xd800) << 10) + (low - 0xdc00);
    } else if (code_point >= 0xd800 && code_point <= 0xdfff) {
        fail("half of a surrogate pair");
    }
    append_utf8(to, code_point);
}

// By the grammar of JSON, which from_chars does not check: no leading zero, digits on both sides
// of the point.
std::string_view JsonCursor::number_token() {
    skip_space();
    const std::size_t begin = at_;
    const auto digits = [&] {
        const std::size_t first = at_;
        while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
        if (at_ == first) fail("expected a number");
        return at_ - first;
    };
    const auto here = [&](char c) { return at_ < text_.size() && text_[at_] == c; };
    if (here('-')) ++at_;
    const bool zero = here('0');
    if (digits() > 1 && zero) fail("expected a number without leading zeros");
    if (here('.')) ++at_, digits();
    if (here('e') || here('E')) {
        ++at_;
        if (here('+') || here('-')) ++at_;
        digits();
    }
    return text_.substr(begin, at_ - begin);
}

std::uint64_t JsonCursor::number(std::uint64_t most) {
    const auto token = number_token();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc{} || end != token.data() + token.size() || value > most)
        fail(fmt::format("expected a whole number of at most {}", most));
    return value;
}

std::int64_t JsonCursor::signed_number() {
    const auto token = number_token();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc{} || end != token.data() + token.size())
        fail("expected a whole number of 64 bits");
    return value;
}

double JsonCursor::real() {
    const auto token = number_token();
    double value = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc{} || end != token.data() + token.size() || !std::isfinite(value))
        fail("expected a number in the range of a double");
    return value;
}

bool JsonCursor::boolean() {
    if (take_word("true")) return true;
    if (take_word("false")) return false;
    fail("expected true or false");
}

bool JsonCursor::null_if_there() {
    return take_word("null");
}

Wide JsonCursor::hex(std::size_t most_digits) {
    const std::string token = text();
    if (token.size() < 3 || token.size() > 2 + most_digits || !token.starts_with("0x"))
        fail("expected a number written as \"0x…\"");
    Wide value = 0;
    for (const char c : token.substr(2)) {
        const int digit = is_digit(c)            ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) fail("expected a number written as \"0x…\"");
        value = value << 4 | static_cast<unsigned>(digit);
    }
    return value;
}

std::uint64_t JsonCursor::hex64() {
    return static_cast<std::uint64_t>(hex(16));
}
Wide JsonCursor::hex128() {
    return hex(32);
}

void JsonCursor::skip() {
    std::string open;  // the brackets we are in, outermost first
    const auto key = [&] {
        text();
        expect(':', "a colon");
    };
    for (;;) {
        skip_space();
        const char c = at_ < text_.size() ? text_[at_] : '\0';
        if (c == '{' || c == '[') {
            ++at_;
            if (open.size() == deepest_skipped) fail("nested too deeply");
            const char closing = c == '{' ? '}' : ']';
            if (!take_if(closing)) {
                open += closing;
                if (closing == '}') key();
                continue;
            }
        } else if (c == '"') {
            text();
        } else if (!take_word("true") && !take_word("false") && !take_word("null")) {
            number_token();
        }
        for (;;) {
            if (open.empty()) return;
            if (take_if(',')) {
                if (open.back() == '}') key();
                break;
            }
            expect(open.back(), "a comma or a closing bracket");
            open.pop_back();
        }
    }
}

void JsonCursor::end() {
    skip_space();
    if (at_ != text_.size()) fail("something follows the end of the profile");
}

}  // namespace shadowprof::model
