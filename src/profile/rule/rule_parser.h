// Reads rules as people write them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "profile/rule/rule.h"

namespace shadowprof::profile {

// What is wrong, and at which character of the text.
class RuleError : public std::runtime_error {
  public:
    RuleError(const std::string& what, std::size_t at) : std::runtime_error(what), position(at) {}
    std::size_t position;
};

// Throw RuleError.
Rule parse_rule(std::string_view text);
Pattern parse_pattern(std::string_view text);

// Those of a file: one after the other, each beginning on a line of its own; a line that begins
// with white space goes on with the rule before it. `#` begins a comment. Throws UserError that
// names the line, with a caret under the character; so does the other, for an option's text.
std::vector<Rule> parse_rules_file(const std::string& name, std::string_view text);
Rule parse_rule_option(std::string_view text);
// "thread, errno": the keys that may follow `by` in a rule, but for its target.
StateKeys parse_keys_option(std::string_view option, std::string_view text);

}  // namespace shadowprof::profile
