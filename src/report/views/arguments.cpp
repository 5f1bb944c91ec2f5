#include "report/views/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "model/utf8.h"

namespace shadowprof::report {

namespace {

constexpr std::int64_t most_exact = std::int64_t{1} << 53;  // in a double

decltype(Argument::value) shown(const Parameter& p, std::uint64_t value) {
    using enum Parameter::Kind;
    const auto unused = 64 - std::clamp(p.bits, 1u, 64u);
    const auto number = p.kind == signed_number
                            ? static_cast<std::int64_t>(value << unused) >> unused
                            : static_cast<std::int64_t>(value);
    for (const auto& [name, known] : p.enumerators)
        if (known == number) return printable(name);
    if (p.kind == pointer) return fmt::format("{:#x}", value);
    if (p.kind == boolean) return value != 0;
    if (p.kind == character && 0x20 <= value && value < 0x7f)
        return fmt::format("'{}'", static_cast<char>(value));
    if (p.kind != signed_number && number < 0) return fmt::format("{}", value);
    if (number < -most_exact || most_exact < number) return fmt::format("{}", number);
    return number;
}

}  // namespace

std::vector<Argument> arguments_of(const Location& function,
                                   const std::vector<std::uint64_t>& values) {
    std::vector<Argument> arguments;
    const auto count = std::min(values.size(), function.parameters.size());
    for (std::size_t n = 0; n < count; ++n) {
        const auto& parameter = function.parameters[n];
        arguments.push_back({printable(parameter.name), shown(parameter, values[n])});
    }
    return arguments;
}

std::string argument_text(const std::vector<Argument>& arguments) {
    std::string text;
    for (const auto& [name, value] : arguments)
        text += std::visit(
            [&, &name = name](const auto& v) {
                return fmt::format("{}{}={}", text.empty() ? "" : ", ", name, v);
            },
            value);
    return text;
}

}  // namespace shadowprof::report
