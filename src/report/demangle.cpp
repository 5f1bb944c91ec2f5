#include "report/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace shadowprof::report {

namespace {

// The closing bracket that matches the opening one at `at`; npos if there is none. "->" and
// operator names contain angle brackets that enclose nothing.
std::size_t matching(std::string_view s, std::size_t at) {
    std::size_t depth = 0;
    for (std::size_t i = at; i < s.size(); ++i) {
        if (s[i] == '(' || s[i] == '<' || s[i] == '[' || s[i] == '{') ++depth;
        const bool arrow = s[i] == '>' && i > 0 && s[i - 1] == '-';
        if (s[i] == ')' || (s[i] == '>' && !arrow) || s[i] == ']' || s[i] == '}')
            if (--depth == 0) return i;
    }
    return s.npos;
}

bool ends_with_operator(std::string_view s) {
    while (!s.empty() && std::string_view("<>=-!+*/%^&|~, ()[]").find(s.back()) != s.npos)
        s.remove_suffix(1);
    return s.ends_with("operator") &&
           (s.size() == 8 || s[s.size() - 9] == ':' || s[s.size() - 9] == ' ');
}

}  // namespace

std::string demangle(const std::string& symbol) {
    const std::string plain = symbol.substr(0, symbol.find('@', 1));
    if (!plain.starts_with("_Z")) return plain;
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text{
        abi::__cxa_demangle(plain.c_str(), nullptr, nullptr, &status), &std::free};
    return text ? std::string(text.get()) : plain;
}

std::string without_parameters(std::string_view function) {
    std::string out;
    for (std::size_t i = 0; i < function.size(); ++i) {
        const char c = function[i];
        if ((c == '(' || c == '<') && !ends_with_operator(out)) {
            const auto close = matching(function, i);
            if (close == function.npos) return std::string(function);
            const auto inside = function.substr(i, close - i + 1);
            // "(anonymous namespace)::f" is part of the name; so is "(…)::{lambda(int)#1}".
            const bool name_goes_on = function.substr(close + 1, 2) == "::";
            if (c == '(' && inside == "(anonymous namespace)")
                out += inside;
            else if (c == '(' && !name_goes_on && !out.empty())
                return out;
            i = close;
            continue;
        }
        out += c;
        // A return type, which templates have: "void f<int>(int)".
        if (c == ' ' && !ends_with_operator(out) && function.find('(', i) != function.npos &&
            out.find("operator") == out.npos)
            out.clear();
    }
    return out.empty() ? std::string(function) : out;
}

}  // namespace shadowprof::report
