// Limits on changes, and whether a diff keeps to them.
//
// A change exceeds a limit only if it is beyond both the limit and the noise: even the least
// increase that is compatible with the profiles must be greater than the limit allows. So a gate
// with enough baseline runs does not fail by chance.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/diff/diff.h"

namespace shadowprof::report {

// "+2%" of the baseline, or "+10k" instructions.
struct Allowance {
    double relative = 0;
    std::optional<double> absolute;
    std::string text;  // as it was written
    double of(double base) const { return absolute.value_or(base * relative); }
};

// Throws UserError(bad_usage).
Allowance parse_allowance(std::string_view text);

struct FunctionLimit {
    std::string pattern;  // of a name, as of files in a shell
    Allowance allowance;
};
FunctionLimit parse_function_limit(std::string_view text);  // "NAME=+5%"

// A limit on the waiting of one function's loads, or of all loads.
struct LatencyLimit {
    std::string pattern;  // empty: of all
    Allowance allowance;
};
LatencyLimit parse_latency_limit(std::string_view text);  // "+10%", "NAME=+10%"

struct GateLimits {
    std::optional<Allowance> instructions;
    std::vector<FunctionLimit> functions;
    std::optional<Allowance> any_function;
    std::vector<LatencyLimit> latencies;
    // Functions with a smaller share of the instructions, before and after, are not subject to
    // `any_function`: a function that hardly runs doubles easily.
    double least_share = 0.001;
    bool empty() const {
        return !instructions && functions.empty() && !any_function && latencies.empty();
    }
};

struct Verdict {
    std::string limit;  // "--max-instructions +2%"
    Change change;
    Unit unit = Unit::count;
    double allowed = 0;  // the greatest value that keeps to the limit
    bool exceeded = false;
    std::vector<Change> causes;  // of a total: the functions that grew most
};

struct GateResult {
    // Of limits that were exceeded, and of all limits on named functions.
    std::vector<Verdict> verdicts;
    std::uint64_t functions_checked = 0;
    bool passed() const;
};

// Throws UserError(incomparable) if the profiles lack data that a limit needs, and
// UserError(error) if no function has the name in a limit.
GateResult check_limits(const Diff& diff, const GateLimits& limits);

}  // namespace shadowprof::report
