#include "report/symbols/cxx_names.h"

#include <algorithm>
#include <array>

namespace shadowprof::report {

namespace {

using std::string_view;
constexpr auto npos = string_view::npos;

bool opens(char c) {
    return c == '<' || c == '(' || c == '[' || c == '{';
}
bool closes(char c) {
    return c == '>' || c == ')' || c == ']' || c == '}';
}

// Signs in these names are no brackets.
std::size_t length_of_operator(string_view rest) {
    constexpr std::array<string_view, 12> operators{
        "operator<=>", "operator<<=", "operator>>=", "operator->*", "operator<<", "operator>>",
        "operator<=",  "operator>=",  "operator->",  "operator()",  "operator<",  "operator>"};
    for (const auto sign : operators)
        if (rest.starts_with(sign)) return sign.size();
    return 0;
}

// Where what opens at `from` closes; npos if nowhere.
std::size_t end_of(string_view text, std::size_t from) {
    int depth = 0;
    for (auto i = from; i < text.size(); ++i) {
        if (const auto length = length_of_operator(text.substr(i))) {
            i += length - 1;
            continue;
        }
        if (opens(text[i])) ++depth;
        if (closes(text[i]) && --depth == 0) return i;
    }
    return npos;
}

// Where a function's parameters open: the last parenthesis outside of all brackets.
std::size_t parameters_at(string_view function) {
    auto found = npos;
    for (std::size_t i = 0; i < function.size(); ++i) {
        if (const auto length = length_of_operator(function.substr(i))) {
            i += length - 1;
            continue;
        }
        if (!opens(function[i])) continue;
        // What compilers add: "[clone .part.0]", "[abi:cxx11]".
        if (function[i] == '(' && function.substr(i) != "(anonymous namespace)" &&
            !function.substr(i).starts_with("(anonymous namespace)"))
            found = i;
        const auto end = end_of(function, i);
        if (end == npos) return npos;
        i = end;
    }
    return found;
}

string_view trimmed(string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
}

std::vector<string_view> separated(string_view list) {
    std::vector<string_view> parts;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (const auto length = length_of_operator(list.substr(i))) {
            i += length - 1;
        } else if (opens(list[i])) {
            const auto end = end_of(list, i);
            if (end == npos) return {};
            i = end;
        } else if (list[i] == ',') {
            parts.push_back(trimmed(list.substr(begin, i - begin)));
            begin = i + 1;
        }
    }
    if (const auto last = trimmed(list.substr(begin)); !last.empty()) parts.push_back(last);
    return parts;
}

// Where the last "::" outside of brackets is.
std::size_t last_scope(string_view name) {
    auto found = npos;
    for (std::size_t i = 0; i + 1 < name.size(); ++i) {
        if (length_of_operator(name.substr(i))) break;
        if (opens(name[i])) {
            const auto end = end_of(name, i);
            if (end == npos) break;
            i = end;
        } else if (name[i] == ':' && name[i + 1] == ':') {
            found = i++;
        }
    }
    return found;
}

bool is_a_default(string_view argument) {
    constexpr std::array<string_view, 6> defaults{"std::allocator<",   "std::less<",
                                                  "std::char_traits<", "std::hash<",
                                                  "std::equal_to<",    "std::default_delete<"};
    return std::ranges::any_of(defaults, [&](auto d) { return argument.starts_with(d); });
}

}  // namespace

std::vector<string_view> parameters_of(string_view function) {
    const auto begin = parameters_at(function);
    if (begin == npos) return {};
    return separated(function.substr(begin + 1, end_of(function, begin) - begin - 1));
}

string_view name_with_class(string_view function) {
    return function.substr(0, parameters_at(function));
}

string_view last_part(string_view name) {
    const auto scope = last_scope(name);
    return scope == npos ? name : name.substr(scope + 2);
}

string_view copied_class(string_view function) {
    const auto name = name_with_class(function);
    const auto scope = last_scope(name);
    if (scope == npos) return {};
    const auto type = name.substr(0, scope);
    const auto parameters = parameters_of(function);
    if (parameters.empty() || !parameters.front().ends_with(" const&") ||
        parameters.front().substr(0, parameters.front().size() - 7) != type)
        return {};
    // The constructor is called what the class is; assignment takes the same.
    const auto constructor = last_part(name), own = last_part(type);
    const auto plain = own.substr(0, own.find('<'));
    return constructor.substr(0, constructor.find('[')) == plain ? type : string_view();
}

string_view destroyed_class(string_view function) {
    const auto name = name_with_class(function);
    const auto scope = last_scope(name);
    return scope != npos && name.substr(scope).starts_with("::~") ? name.substr(0, scope)
                                                                  : string_view();
}

string_view whole_template(string_view type) {
    const auto begin = type.find('<');
    const auto end = begin == npos ? npos : end_of(type, begin);
    return end == npos ? type : type.substr(0, end + 1);
}

std::vector<string_view> template_arguments(string_view type) {
    const auto begin = type.find('<');
    const auto end = begin == npos ? npos : end_of(type, begin);
    if (end == npos) return {};
    return separated(type.substr(begin + 1, end - begin - 1));
}

std::string short_type(string_view type) {
    const auto begin = type.find('<');
    const auto end = begin == npos ? npos : end_of(type, begin);
    if (end == npos) return std::string(type);
    std::string arguments;
    for (const auto argument : template_arguments(type))
        if (!is_a_default(argument))
            arguments += (arguments.empty() ? "" : ", ") + short_type(argument);
    std::string name(type.substr(0, begin));
    for (const string_view hidden : {"__cxx11::", "__1::"})
        if (const auto at = name.find(hidden); at != name.npos) name.erase(at, hidden.size());
    const auto rest = short_type(type.substr(end + 1));
    if (name == "std::basic_string" && arguments == "char") return "std::string" + rest;
    return name + "<" + arguments + ">" + rest;
}

string_view without_stub(string_view function) {
    constexpr string_view stub = "@plt";
    if (function.ends_with(stub)) function.remove_suffix(stub.size());
    return function;
}

}  // namespace shadowprof::report
