#include "profile/rule/rule_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "model/utf8.h"
#include "profile/rule/rule_parser.h"

namespace shadowprof::profile {

namespace {

constexpr std::array<std::string_view, 17> signs{"&&", "||", "=>", "==", "!=", "<=", ">=", "<", ">",
                                                 "!",  "(",  ")",  "[",  "]",  ",",  ":",  "="};

bool begins_word(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '*' || c == '?';
}
bool is_in_word(char c) {
    return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)) || c == '.' || c == '-' ||
           c == '@';
}

}  // namespace

std::vector<Token> tokens_of(std::string_view text) {
    std::vector<Token> tokens;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (std::isspace(static_cast<unsigned char>(c))) {
            ++at;
        } else if (c == '"') {
            const auto end = text.find('"', at + 1);
            if (end == text.npos) throw RuleError("a quoted name without its closing quote", at);
            if (end == at + 1) throw RuleError("an empty name", at);
            tokens.push_back({TokenKind::text, std::string(text.substr(at + 1, end - at - 1)), at});
            at = end + 1;
        } else if (std::isdigit(static_cast<unsigned char>(c)) ||
                   (c == '-' && at + 1 < text.size() &&
                    std::isdigit(static_cast<unsigned char>(text[at + 1])))) {
            auto end = at + 1;
            while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]))) ++end;
            tokens.push_back({TokenKind::number, std::string(text.substr(at, end - at)), at});
            at = end;
        } else if (begins_word(c)) {
            auto end = at + 1;
            while (end < text.size() && is_in_word(text[end])) ++end;
            tokens.push_back({TokenKind::word, std::string(text.substr(at, end - at)), at});
            at = end;
        } else {
            const auto sign = std::find_if(signs.begin(), signs.end(), [&](std::string_view s) {
                return text.substr(at).starts_with(s);
            });
            if (sign == signs.end()) {
                auto end = at + 1;  // a whole character
                while (end < text.size() && (text[end] & 0xc0) == 0x80) ++end;
                throw RuleError(
                    fmt::format("unexpected '{}'", model::printable(text.substr(at, end - at))),
                    at);
            }
            tokens.push_back({TokenKind::sign, std::string(*sign), at});
            at += sign->size();
        }
    }
    tokens.push_back({TokenKind::end, "", text.size()});
    return tokens;
}

}  // namespace shadowprof::profile
