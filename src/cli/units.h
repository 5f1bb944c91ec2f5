// Reads values as people write them on a command line. What is wrong is a CLI::ValidationError,
// which is reported as bad usage.
#pragma once

#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <string>

#include "machine/cache_geometry.h"

namespace shadowprof::cli {

std::uint64_t parse_count(const std::string& text);  // 500, 10k, 1M, 2G
// 48k,2M,32M; a level that is left out or 0 does not exist
std::array<machine::CacheGeometry::Level, 3> parse_caches(const std::string& text);
double parse_seconds(const std::string& text);  // 2, 2s, 500ms, 1m, 100us
double parse_share(const std::string& text);    // 1%, 0.5 (percent), as a fraction

pid_t parse_pid(const std::string& text);

// How many rows tables have: --top.
void add_rows(CLI::App& command, std::size_t& rows, const std::string& help);

// For options that name a file to be written, as their transform(): not empty, and "-" is standard
// output.
CLI::Validator output_name();
// Where snapshots of a profile go that is written there: beside it, if it is a file.
std::string snapshot_name(const std::string& output);

}  // namespace shadowprof::cli
