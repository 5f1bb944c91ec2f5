// Numbers as people write them on a command line. All throw CLI::ValidationError, which is bad
// usage.
#pragma once

#include <cstdint>
#include <string>

namespace shadowprof::cli {

std::uint64_t parse_count(const std::string& text);  // 500, 10k, 1M, 2G
double parse_seconds(const std::string& text);       // 2, 2s, 500ms, 1m, 100us
double parse_share(const std::string& text);         // 1%, 0.5 (percent), as a fraction

}  // namespace shadowprof::cli
