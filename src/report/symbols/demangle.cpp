#include "report/symbols/demangle.h"

// Or it declares basename(3) in another way than the C library.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include <array>
#include <csetjmp>
#include <optional>

namespace shadowprof::report {

namespace {

// The longest come first. " new" and the like are words.
constexpr std::array<std::string_view, 45> operators{
    " delete[]", " new[]", " delete", " new", "<=>", "<<=",  ">>=", "->*", "()", "[]", "<<", ">>",
    "<=",        ">=",     "==",      "!=",   "&&",  "||",   "++",  "--",  "->", "+=", "-=", "*=",
    "/=",        "%=",     "^=",      "&=",   "|=",  "\"\"", "<",   ">",   "=",  "+",  "-",  "*",
    "/",         "%",      "^",       "&",    "|",   "~",    "!",   ",",   "?"};

// The length of the operator's name at the beginning of `s`, as in "operator<<" or "operator()"; 0
// if there is none.
std::size_t operator_name_size(std::string_view s) {
    static constexpr std::string_view keyword = "operator";
    if (!s.starts_with(keyword)) return 0;
    for (const auto symbol : operators)
        if (s.substr(keyword.size()).starts_with(symbol)) return keyword.size() + symbol.size();
    return 0;
}

// The length of the bracketed text at the beginning of `s`, brackets included; 0 if the bracket is
// not closed. The arrow of a return type is not a bracket.
std::size_t bracketed_size(std::string_view s) {
    std::size_t depth = 0;
    for (std::size_t i = 0; i < s.size();) {
        if (const auto skipped = operator_name_size(s.substr(i))) {
            i += skipped;
            continue;
        }
        const char c = s[i++];
        if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
        const bool arrow = c == '>' && i > 1 && s[i - 2] == '-';
        if ((c == ')' || c == '>' || c == ']' || c == '}') && !arrow && --depth == 0) return i;
    }
    return 0;
}

constexpr std::size_t longest_name = 16384;

// What a symbol stands for can be exponentially longer than the symbol, and take as long to write:
// a name that is longer than anybody reads is given up.
class Demangling {
  public:
    std::optional<std::string> text_of(const std::string& symbol) {
        text_.clear();
        if (setjmp(give_up_) != 0) return {};
        // Names of Rust's older scheme are C++ names with a hash at the end.
        if (rust_demangle_callback(symbol.c_str(), DMGL_RUST, &append, this) != 0) return text_;
        text_.clear();
        constexpr int options = DMGL_PARAMS | DMGL_TYPES;
        if (symbol.starts_with("_Z") &&
            cplus_demangle_v3_callback(symbol.c_str(), options, &append, this) != 0)
            return text_;
        return {};
    }

  private:
    // libiberty is C: nothing in it is to be destroyed on the way out.
    static void append(const char* piece, std::size_t size, void* self) {
        auto& all = *static_cast<Demangling*>(self);
        if (all.text_.size() + size > longest_name) std::longjmp(all.give_up_, 1);
        all.text_.append(piece, size);
    }

    std::string text_;
    std::jmp_buf give_up_;
};

}  // namespace

std::string demangle(const std::string& symbol) {
    static constexpr std::string_view stub = "@plt";
    if (symbol.size() > stub.size() && symbol.ends_with(stub))
        return demangle(symbol.substr(0, symbol.size() - stub.size())) + std::string(stub);
    std::string plain = symbol.substr(0, symbol.find('@', 1));
    if (plain.starts_with("_R") || plain.starts_with("_Z"))
        if (auto text = Demangling().text_of(plain)) return *std::move(text);
    return plain.substr(0, longest_name);
}

std::string without_parameters(std::string_view function) {
    std::string out;
    bool operator_seen = false;  // after which a space is part of the name ("operator bool")
    for (std::size_t i = 0; i < function.size();) {
        const auto rest = function.substr(i);
        const bool at_word = out.empty() || out.back() == ':' || out.back() == ' ';
        const bool at_operator = at_word && rest.starts_with("operator");
        operator_seen = operator_seen || at_operator;
        const char c = rest.front();
        if (const auto name = at_operator ? operator_name_size(rest) : 0) {
            out += rest.substr(0, name);
            i += name;
            if (function.substr(i, 2) == " <") ++i;  // "operator<< <int>(int)"
        } else if (c == '(' || c == '<' || c == '{') {
            const auto size = bracketed_size(rest);
            if (size == 0) return std::string(function);
            const auto after = rest.substr(size);
            // Rust: "<app::Circle as app::Shape>::area" is app::Circle::area.
            if (c == '<' && out.empty() && after.starts_with("::")) {
                const auto type = rest.substr(1, size - 2);
                out = without_parameters(type.substr(0, type.find(" as ")));
                i += size;
                continue;
            }
            const bool is_last = after.empty() || after.front() == ' ' || after.front() == '&';
            if (c == '(' && is_last && !out.empty()) return out;
            // "(anonymous namespace)::f", "f()::{lambda(int)#1}", and Go's "main.(*T).f".
            const bool parameters =
                c == '(' && after.starts_with("::") && !out.empty() && out.back() != ':';
            if (c != '<' && !parameters) out += rest.substr(0, size);
            i += size;
        } else if (c == ' ' && !operator_seen) {
            if (rest.starts_with(" [clone")) return out;
            // Java numbers what its own code is made up of: "StubRoutines (2)".
            if (rest.starts_with(" (") && bracketed_size(rest.substr(1)) == rest.size() - 1)
                return out + std::string(rest);
            out.clear();  // it was a return type: "void f<int>(int)"
            ++i;
        } else {
            out += c;
            ++i;
        }
    }
    return out.empty() ? std::string(function) : out;
}

}  // namespace shadowprof::report
