// Writes a comparison for programs. docs/compare.schema.json defines the format;
// shadowprof-profile(5) explains the figures.
#pragma once

#include <string>
#include <string_view>

#include "report/compare/compare.h"

namespace shadowprof::report {

inline constexpr std::string_view compare_schema_name = "shadowprof-compare";
inline constexpr std::uint64_t compare_schema_version = 1;

std::string to_json(const Comparison& comparison);

}  // namespace shadowprof::report
