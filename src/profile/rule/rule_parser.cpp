#include "profile/rule/rule_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "model/utf8.h"
#include "profile/rule/rule_tokens.h"

namespace shadowprof::profile {

namespace {

using Kind = Pattern::Kind;

constexpr std::array<std::string_view, 16> register_names{"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                                          "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                                          "r12", "r13", "r14", "r15"};
constexpr unsigned most_arguments = 6, most_operands = 9;

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text), tokens_(tokens_of(text)) {}

    Rule rule() {
        Rule rule;
        if (peek().kind != TokenKind::word) fail("a rule begins with its name, as in 'NAME: …'");
        rule.name = take().text;
        if (rule.name.find_first_of("*?@") != rule.name.npos)
            fail_at("a name has letters, digits, '_', '-' and '.'", 0);
        if (accept("[")) parameters(rule);
        if (!accept(":")) fail(fmt::format("':' and a pattern are missing after {}", last_words()));
        const auto begin = peek().at;
        rule.pattern = either();
        if (!accept("=>"))
            fail(fmt::format("'=>' and an action are missing after {}", last_words()));
        action(rule);
        if (peek().kind != TokenKind::end) fail("nothing can follow here but 'at' and 'by'");
        rule.text = text_.substr(begin);
        while (!rule.text.empty() && std::isspace(static_cast<unsigned char>(rule.text.back())))
            rule.text.pop_back();
        return rule;
    }

    Pattern whole_pattern() {
        auto pattern = either();
        if (peek().kind != TokenKind::end) fail("nothing can follow here but '&&', '||' and 'in'");
        return pattern;
    }

    StateKeys whole_keys() {
        StateKeys keys;
        do state_key(keys, "");
        while (accept(","));
        if (peek().kind != TokenKind::end) fail("keys are separated by ','");
        return keys;
    }

  private:
    const Token& peek() const { return tokens_[next_]; }
    const Token& take() { return tokens_[next_ + 1 < tokens_.size() ? next_++ : next_]; }
    bool is_sign(std::string_view sign) const {
        return peek().kind == TokenKind::sign && peek().text == sign;
    }
    bool is_word(std::string_view word) const {
        return peek().kind == TokenKind::word && peek().text == word;
    }
    bool accept(std::string_view what) {
        if (!is_sign(what) && !is_word(what)) return false;
        take();
        return true;
    }
    [[noreturn]] static void fail_at(const std::string& what, std::size_t at) {
        throw RuleError(what, at);
    }
    [[noreturn]] void fail(const std::string& what) const { fail_at(what, peek().at); }
    std::string last_words() const {
        return next_ == 0 ? "the beginning" : "'" + tokens_[next_ - 1].text + "'";
    }

    std::uint64_t whole_number(const std::string& of, std::uint64_t least, std::uint64_t most) {
        const auto& token = peek();
        if (token.kind != TokenKind::number) fail(fmt::format("{} is a number", of));
        const auto n = number();
        if (n.is_negative || n.bits < least || n.bits > most)
            fail_at(fmt::format("{} is from {} to {}", of, least, most), token.at);
        return n.bits;
    }

    RuleNumber number() {
        const auto token = take();
        if (token.kind != TokenKind::number) fail_at("a number is missing", token.at);
        std::string_view digits = token.text;
        RuleNumber n;
        n.is_negative = digits.starts_with('-');
        if (n.is_negative) digits.remove_prefix(1);
        int base = 10;
        if (digits.starts_with("0x") || digits.starts_with("0X")) {
            base = 16;
            digits.remove_prefix(2);
        }
        std::uint64_t factor = 1;
        if (base == 10 && !digits.empty()) {
            constexpr std::string_view units = "kMG";
            if (const auto unit = units.find(digits.back()); unit != units.npos) {
                factor = std::uint64_t{1} << 10 * (unit + 1);
                digits.remove_suffix(1);
            }
        }
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), n.bits, base);
        const bool fits = !__builtin_mul_overflow(n.bits, factor, &n.bits) &&
                          !(n.is_negative && n.bits > std::uint64_t{1} << 63);
        if (error != std::errc{} || end != digits.data() + digits.size() || !fits)
            fail_at("not a number of 64 bits", token.at);
        if (n.is_negative) n.bits = -n.bits;
        return n;
    }

    void parameters(Rule& rule) {
        do {
            const auto name = take();
            if (name.kind != TokenKind::word || (name.text != "sparsity" && name.text != "burst"))
                fail_at("the parameters of a rule are sparsity and burst", name.at);
            if (!accept("=")) fail(fmt::format("'=' is missing after '{}'", name.text));
            if (name.text == "sparsity")
                rule.sparsity =
                    static_cast<std::uint32_t>(whole_number(name.text, 0, most_sparsity));
            else
                rule.burst = static_cast<std::uint32_t>(whole_number(name.text, 1, most_burst));
        } while (accept(","));
        if (!accept("]")) fail("']' is missing");
    }

    // --- patterns

    static Pattern joined(Kind kind, Pattern left, Pattern right) {
        Pattern both{.kind = kind};
        both.parts.push_back(std::move(left));
        both.parts.push_back(std::move(right));
        return both;
    }

    Pattern either() {
        auto pattern = both();
        while (accept("||")) pattern = joined(Kind::either, std::move(pattern), both());
        return pattern;
    }
    Pattern both() {
        auto pattern = factor();
        while (true) {
            if (accept("&&"))
                pattern = joined(Kind::both, std::move(pattern), factor());
            else if (accept("in"))
                pattern = joined(Kind::both, std::move(pattern), place());
            else
                return pattern;
        }
    }
    Pattern factor() {
        constexpr std::size_t deepest = 100;
        const auto at = peek().at;
        if (++depth_ > deepest) fail("too many parentheses");
        Pattern pattern;
        if (accept("!")) {
            pattern.kind = Kind::not_;
            pattern.parts.push_back(factor());
        } else if (accept("(")) {
            pattern = either();
            if (!accept(")")) fail(fmt::format("')' is missing for the '(' at {}", at + 1));
        } else {
            pattern = atom();
        }
        --depth_;
        return pattern;
    }

    std::string name(const std::string& of) {
        const auto token = take();
        if (token.kind != TokenKind::text && token.kind != TokenKind::word)
            fail_at(fmt::format("a name is missing after '{}'", of), token.at);
        return token.text;
    }

    static std::optional<NameOf> name_of(const std::string& word) {
        if (word == "function") return NameOf::function;
        if (word == "file") return NameOf::file;
        if (word == "module") return NameOf::module;
        return {};
    }

    Pattern place() {
        const auto token = take();
        const auto of = token.kind == TokenKind::word ? name_of(token.text) : std::nullopt;
        if (!of) fail_at("after 'in' comes function, file or module", token.at);
        return {.kind = Kind::in_place, .text = name(token.text), .name = *of};
    }

    // `to NAME`, `to module NAME`, `to file NAME`
    Pattern target(Kind of) {
        Pattern to{.kind = Kind::to_place, .name = NameOf::function};
        if (peek().kind == TokenKind::word)
            if (const auto kind = name_of(peek().text)) {
                to.name = *kind;
                take();
            }
        to.text = name("to");
        return joined(Kind::both, {.kind = of}, std::move(to));
    }

    Pattern atom() {
        const auto token = peek();
        if (token.kind != TokenKind::word) fail("a pattern is missing here");
        if (const auto of = name_of(token.text)) return place();
        if (is_operand()) {
            Pattern compared{.kind = Kind::value, .operand = operand()};
            compared.comparison = comparison();
            compared.number = number();
            return compared;
        }
        take();
        const auto& word = token.text;
        if (word == "any") return {.kind = Kind::any};
        if (word == "call") {
            return accept("to") ? target(Kind::call) : Pattern{.kind = Kind::call};
        }
        if (word == "branch") {
            auto kind = Kind::branch;
            if (accept("back"))
                kind = Kind::branch_back;
            else if (accept("forward"))
                kind = Kind::branch_on;
            return accept("to") ? target(kind) : Pattern{.kind = kind};
        }
        if (word == "return") return {.kind = Kind::return_};
        if (word == "syscall") return {.kind = Kind::system_call};
        if (word == "conditional") return {.kind = Kind::conditional};
        if (word == "entry") return {.kind = Kind::entry};
        if (word == "local") return {.kind = Kind::local};
        if (word == "load") return {.kind = Kind::load};
        if (word == "store") return {.kind = Kind::store};
        if (word == "immediate") return {.kind = Kind::immediate};
        if (word == "mnemonic") return {.kind = Kind::mnemonic, .text = name(word)};
        if (word == "extension") return {.kind = Kind::extension, .text = name(word)};
        if (word == "class") return {.kind = Kind::category, .text = name(word)};
        if (word == "bytes") {
            Pattern bytes{.kind = Kind::bytes};
            bytes.comparison = comparison();
            bytes.number = number();
            return bytes;
        }
        fail_at(
            fmt::format(
                "'{}' is no pattern: there are any, call, return, branch, conditional, "
                "entry, local, syscall, load, store, immediate, bytes, mnemonic, extension, class, "
                "function, file, module, and comparisons of values",
                word),
            token.at);
    }

    Comparison comparison() {
        static constexpr std::array<std::pair<std::string_view, Comparison>, 6> all{
            {{"==", Comparison::equal},
             {"!=", Comparison::not_equal},
             {"<", Comparison::less},
             {"<=", Comparison::less_equal},
             {">", Comparison::greater},
             {">=", Comparison::greater_equal}}};
        for (const auto& [sign, comparison] : all)
            if (accept(sign)) return comparison;
        fail("a comparison is missing: ==, !=, <, <=, > or >=");
    }

    // --- values

    bool is_operand() const {
        if (peek().kind != TokenKind::word) return false;
        const auto& word = peek().text;
        const auto& next = tokens_[std::min(next_ + 1, tokens_.size() - 1)];
        // Alone these are patterns.
        if (word == "return" || word == "immediate") {
            constexpr std::array<std::string_view, 6> comparisons{"==", "!=", "<", "<=", ">", ">="};
            return next.kind == TokenKind::sign && std::find(comparisons.begin(), comparisons.end(),
                                                             next.text) != comparisons.end();
        }
        return word == "op" || word == "arg" || word == "result" || word == "address" ||
               word == "memory" ||
               std::find(register_names.begin(), register_names.end(), word) !=
                   register_names.end();
    }

    RuleOperand operand() {
        using enum RuleOperand::Kind;
        const auto token = take();
        const auto& word = token.text;
        const auto numbered = [&](const char* of, unsigned most) {
            return static_cast<std::uint8_t>(whole_number(of, 1, most) - 1);
        };
        if (token.kind == TokenKind::word) {
            if (word == "op")
                return {operand_kind, numbered("the number of an operand", most_operands)};
            if (word == "arg")
                return {argument, numbered("the number of an argument", most_arguments)};
            if (word == "return") return {return_};
            if (word == "result") return {result};
            if (word == "address") return {address};
            if (word == "memory") return {memory};
            if (word == "immediate") return {immediate};
            const auto reg = std::find(register_names.begin(), register_names.end(), word);
            if (reg != register_names.end())
                return {register_, static_cast<std::uint8_t>(reg - register_names.begin())};
        }
        fail_at(
            "a value is arg N, op N, result, return, address, memory, immediate or a register "
            "(rax … r15)",
            token.at);
    }
    static constexpr auto operand_kind = RuleOperand::Kind::operand;

    // --- actions

    void action(Rule& rule) {
        const auto token = take();
        if (token.kind == TokenKind::word && token.text == "value") {
            if (!accept("(")) fail("value has its operand in parentheses: value(arg 1)");
            rule.value = operand();
            if (!accept(")")) fail("')' is missing");
        } else if (token.kind == TokenKind::word && token.text == "stream") {
            rule.streams = true;
            if (is_word("at") || is_word("by"))
                fail("streams are told apart by their references, and by nothing else");
        } else if (token.kind != TokenKind::word || token.text != "count") {
            fail_at("an action is count, value(…) or stream", token.at);
        }
        while (true) {
            if (accept("at"))
                rule.at = at();
            else if (accept("by"))
                do key(rule);
                while (accept(","));
            else
                return;
        }
    }

    Rule::At at() {
        if (accept("function")) return Rule::At::function;
        if (accept("instruction")) return Rule::At::instruction;
        if (accept("target"))
            return accept("function") ? Rule::At::target_function : Rule::At::target;
        fail("after 'at' comes instruction, function, target or target function");
    }

    void key(Rule& rule) {
        if (accept("target"))
            rule.by.target = true;
        else
            state_key(rule.by, "target, ");
    }

    void state_key(StateKeys& keys, const char* others) {
        std::string all;
        for (const auto& [words, key] : state_key_words()) {
            all += (all.empty() ? "" : ", ") + std::string(words);
            if (!accept(words.substr(0, words.find(' ')))) continue;
            if (const auto second = words.find(' '); second != words.npos)
                if (!accept(words.substr(second + 1)))
                    fail(fmt::format("'{}' is missing after '{}'", words.substr(second + 1),
                                     words.substr(0, second)));
            keys.*key = true;
            if (keys.return_address && keys.caller)
                fail_at("'caller' and 'return address' exclude each other", tokens_[next_ - 1].at);
            return;
        }
        all += fmt::format(", {}", attribute_key_word);
        if (!accept(attribute_key_word)) fail(fmt::format("a key is one of {}{}", others, all));
        if (peek().kind != TokenKind::text && peek().kind != TokenKind::word)
            fail("after 'attribute' comes its name");
        const auto& name = take().text;
        if (std::ranges::find(keys.attributes, name) == keys.attributes.end())
            keys.attributes.push_back(name);
    }

    std::string_view text_;
    std::vector<Token> tokens_;
    std::size_t next_ = 0, depth_ = 0;
};

// The line of the text that the character is in, and a caret under it.
std::string with_caret(std::string_view text, std::size_t at) {
    at = std::min(at, text.size());
    const auto begin = text.substr(0, at).rfind('\n') + 1;  // 0 if there is none
    auto line = text.substr(begin, text.find('\n', begin) - begin);
    const auto column = model::printable(text.substr(begin, at - begin));
    std::string under;
    for (const char c : column)
        if ((c & 0xc0) != 0x80) under += ' ';
    return fmt::format("  {}\n  {}^", model::printable(line), under);
}

template <class Parse>
auto parsed_option(std::string_view option, std::string_view text, Parse parse) {
    try {
        return parse(text);
    } catch (const RuleError& error) {
        throw UserError(
            fmt::format("{}: {}\n{}", option, error.what(), with_caret(text, error.position)),
            ExitStatus::bad_usage);
    }
}

}  // namespace

bool compare(std::uint64_t value, Comparison comparison, const RuleNumber& number) {
    const auto by = [&](auto a, auto b) {
        switch (comparison) {
            case Comparison::equal:
                return a == b;
            case Comparison::not_equal:
                return a != b;
            case Comparison::less:
                return a < b;
            case Comparison::less_equal:
                return a <= b;
            case Comparison::greater:
                return a > b;
            case Comparison::greater_equal:
                return a >= b;
        }
        return false;
    };
    if (number.is_negative)
        return by(static_cast<std::int64_t>(value), static_cast<std::int64_t>(number.bits));
    return by(value, number.bits);
}

Rule parse_rule(std::string_view text) {
    return Parser(text).rule();
}

Pattern parse_pattern(std::string_view text) {
    return Parser(text).whole_pattern();
}

Rule parse_rule_option(std::string_view text) {
    return parsed_option("--rule", text, parse_rule);
}

StateKeys parse_keys_option(std::string_view option, std::string_view text) {
    return parsed_option(option, text,
                         [](std::string_view keys) { return Parser(keys).whole_keys(); });
}

std::vector<Rule> parse_rules_file(const std::string& name, std::string_view text) {
    std::vector<Rule> rules;
    std::string without_comments(text);
    for (std::size_t at = 0; at < without_comments.size(); ++at) {
        // In place, so that characters stay where they are.
        if (without_comments[at] == '"')
            at = std::min(without_comments.find_first_of("\"\n", at + 1), without_comments.size());
        else if (without_comments[at] == '#')
            while (at < without_comments.size() && without_comments[at] != '\n')
                without_comments[at++] = ' ';
    }
    const std::string_view whole = without_comments;
    std::size_t begin = 0;
    while (begin < whole.size()) {
        auto end = begin;
        do {
            end = whole.find('\n', end);
            end = end == whole.npos ? whole.size() : end + 1;
        } while (end < whole.size() &&
                 (whole[end] == ' ' || whole[end] == '\t' || whole[end] == '\n'));
        const auto part = whole.substr(begin, end - begin);
        if (part.find_first_not_of(" \t\r\n") != part.npos) {
            try {
                rules.push_back(parse_rule(part));
            } catch (const RuleError& error) {
                const auto at = begin + error.position;
                const auto line =
                    1 + std::count(
                            whole.begin(),
                            whole.begin() + static_cast<std::ptrdiff_t>(std::min(at, whole.size())),
                            '\n');
                throw UserError(
                    fmt::format("{}:{}: {}\n{}", name, line, error.what(), with_caret(text, at)),
                    ExitStatus::bad_usage);
            }
        }
        begin = end;
    }
    return rules;
}

}  // namespace shadowprof::profile
