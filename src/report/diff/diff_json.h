// Writes a diff and the verdict of a gate for programs.
#pragma once

#include <string>
#include <string_view>

#include "report/diff/diff.h"
#include "report/diff/gate.h"

namespace shadowprof::report {

inline constexpr std::string_view diff_schema_name = "shadowprof-diff";
inline constexpr std::uint64_t diff_schema_version = 1;

// Follows docs/diff.schema.json. `gate` may be null.
std::string to_json(const Diff& diff, const GateResult* gate);

// For services that track benchmarks over time: from the new profile, the instructions of a run and
// of each function that has at least this share.
std::string to_github_action_benchmark(const Diff& diff,
                                       double least_share);    // customSmallerIsBetter
std::string to_bencher(const Diff& diff, double least_share);  // Bencher Metric Format

}  // namespace shadowprof::report
