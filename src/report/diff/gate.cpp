#include "report/diff/gate.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "model/utf8.h"
#include "report/symbols/demangle.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t most_causes = 3;

[[noreturn]] void bad_limit(std::string_view text) {
    throw UserError(fmt::format("\"{}\" is no limit: give +2% or a number of instructions, +10k",
                                printable(std::string(text))),
                    ExitStatus::bad_usage);
}

bool exceeds(const Change& c, const Allowance& allowance) {
    return c.is_real() && c.least_increase() > allowance.of(c.base);
}

Verdict verdict_on(std::string limit, const Change& c, Unit unit, const Allowance& allowance) {
    return {std::move(limit), c, unit, c.base + allowance.of(c.base), exceeds(c, allowance), {}};
}

// "ns::parse<int> (lib.so)" matches by its whole name, by the name of the function, and by that
// name without parameters.
bool is_called(const std::string& name, const std::string& pattern) {
    const auto matches = [&](const std::string& text) {
        return text == pattern || ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
    };
    const auto function = name.substr(0, name.rfind(" ("));
    return matches(name) || matches(function) || matches(without_parameters(function));
}

class Gate {
  public:
    Gate(const Diff& diff, const GateLimits& limits) : diff_(diff), limits_(limits) {}

    GateResult check() {
        if (limits_.instructions) check_instructions(*limits_.instructions);
        if (!limits_.functions.empty() || limits_.any_function) {
            const auto& functions = diff_.functions();
            if (!functions.why_not.empty()) refuse(functions.why_not);
            for (const auto& limit : limits_.functions) check_function(limit);
            if (limits_.any_function) check_any_function(*limits_.any_function);
        }
        for (const auto& limit : limits_.latencies) check_latency(limit);
        std::stable_partition(out_.verdicts.begin(), out_.verdicts.end(),
                              [](const Verdict& v) { return v.exceeded; });
        return std::move(out_);
    }

  private:
    [[noreturn]] static void refuse(const std::string& why) {
        throw UserError("cannot check: " + why, ExitStatus::incomparable);
    }

    void check_instructions(const Allowance& allowance) {
        if (!diff_.instructions)
            refuse(
                "samples do not tell how many instructions a program executes: profile it with "
                "run --mode full");
        auto verdict = verdict_on("--max-instructions " + allowance.text, *diff_.instructions,
                                  Unit::count, allowance);
        add_causes(verdict, diff_.functions());
        out_.verdicts.push_back(std::move(verdict));
    }

    static void add_causes(Verdict& verdict, const DiffList& functions) {
        if (!verdict.exceeded || !functions.why_not.empty()) return;
        for (const auto& c : functions.changes) {
            if (verdict.causes.size() == most_causes) break;
            if (c.is_real() && c.difference() > 0) verdict.causes.push_back(c);
        }
    }

    void check_latency(const LatencyLimit& limit) {
        const auto& functions = diff_.waiting_of_functions();
        if (!functions.why_not.empty()) refuse(functions.why_not);
        const auto& allowance = limit.allowance;
        if (!limit.pattern.empty())
            return check_functions("--max-latency", functions, limit.pattern, allowance);
        auto verdict =
            verdict_on("--max-latency " + allowance.text, *diff_.waiting, Unit::waiting, allowance);
        add_causes(verdict, functions);
        out_.verdicts.push_back(std::move(verdict));
    }

    void refuse_absolute(const Allowance& allowance) const {
        if (allowance.absolute && !diff_.functions().exact)
            refuse(
                "samples do not tell how many instructions a function executes: limit it by "
                "a percentage, or profile with run --mode full");
    }

    void check_function(const FunctionLimit& limit) {
        refuse_absolute(limit.allowance);
        check_functions("--max-function", diff_.functions(), limit.pattern, limit.allowance);
    }

    void check_functions(std::string_view option, const DiffList& functions,
                         const std::string& pattern, const Allowance& allowance) {
        bool found = false;
        for (const auto& c : functions.changes) {
            if (!is_called(c.name, pattern)) continue;
            found = true;
            out_.verdicts.push_back(
                verdict_on(fmt::format("{} {}={}", option, pattern, allowance.text), c,
                           functions.unit, allowance));
        }
        if (!found)
            throw UserError(
                fmt::format("no function in these profiles is called {}", printable(pattern)));
    }

    void check_any_function(const Allowance& allowance) {
        refuse_absolute(allowance);
        const auto& functions = diff_.functions();
        for (const auto& c : functions.changes) {
            if (std::max(functions.base_share(c), functions.now_share(c)) < limits_.least_share)
                continue;
            ++out_.functions_checked;
            auto verdict =
                verdict_on("--max-any-function " + allowance.text, c, functions.unit, allowance);
            if (verdict.exceeded) out_.verdicts.push_back(std::move(verdict));
        }
    }

    const Diff& diff_;
    const GateLimits& limits_;
    GateResult out_;
};

}  // namespace

Allowance parse_allowance(std::string_view text) {
    Allowance allowance;
    allowance.text = std::string(text);
    auto rest = text;
    if (rest.starts_with('+')) rest.remove_prefix(1);
    double number = 0;
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
    if (error != std::errc() || !std::isfinite(number) || number < 0) bad_limit(text);
    const std::string_view unit(end, static_cast<std::size_t>(rest.data() + rest.size() - end));
    if (unit == "%")
        allowance.relative = number / 100;
    else if (unit.empty())
        allowance.absolute = number;
    else if (unit == "k")
        allowance.absolute = number * 1e3;
    else if (unit == "M")
        allowance.absolute = number * 1e6;
    else if (unit == "G")
        allowance.absolute = number * 1e9;
    else
        bad_limit(text);
    return allowance;
}

FunctionLimit parse_function_limit(std::string_view text) {
    const auto equals = text.rfind('=');
    if (equals == text.npos || equals == 0)
        throw UserError(fmt::format("\"{}\" is no limit of a function: give NAME=+5%",
                                    printable(std::string(text))),
                        ExitStatus::bad_usage);
    return {std::string(text.substr(0, equals)), parse_allowance(text.substr(equals + 1))};
}

LatencyLimit parse_latency_limit(std::string_view text) {
    LatencyLimit limit;
    if (text.find('=') == text.npos) {
        limit.allowance = parse_allowance(text);
    } else {
        auto [pattern, allowance] = parse_function_limit(text);
        limit = {std::move(pattern), std::move(allowance)};
    }
    if (limit.allowance.absolute)
        throw UserError(fmt::format("\"{}\" is no limit of latencies: give a percentage, +10%",
                                    printable(std::string(text))),
                        ExitStatus::bad_usage);
    return limit;
}

bool GateResult::passed() const {
    return std::none_of(verdicts.begin(), verdicts.end(),
                        [](const Verdict& v) { return v.exceeded; });
}

GateResult check_limits(const Diff& diff, const GateLimits& limits) {
    return Gate(diff, limits).check();
}

}  // namespace shadowprof::report
