// The words, names, numbers and signs that rules are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shadowprof::profile {

enum class TokenKind : std::uint8_t { end, word, text, number, sign };

struct Token {
    TokenKind kind = TokenKind::end;
    std::string text;  // without quotes
    std::size_t at = 0;
};

// The last is the end. Throws RuleError.
std::vector<Token> tokens_of(std::string_view text);

}  // namespace shadowprof::profile
