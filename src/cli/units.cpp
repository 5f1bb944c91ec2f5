#include "cli/units.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <sstream>

namespace shadowprof::cli {

namespace {

double scaled(const std::string& text, const std::map<std::string, double>& units,
              const std::string& what) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    const auto unit = units.find(end);
    const bool is_number = end != text.c_str() && std::isfinite(number) && number >= 0;
    if (!is_number || unit == units.end())
        throw CLI::ValidationError("'" + text + "' is not " + what);
    return number * unit->second;
}

}  // namespace

std::uint64_t parse_count(const std::string& text) {
    const auto count = scaled(text, {{"", 1}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}},
                              "a count (500, 10k, 1M, 2G)");
    if (count >= 0x1p63) throw CLI::ValidationError("'" + text + "' is too large");
    return static_cast<std::uint64_t>(std::llround(count));
}

double parse_seconds(const std::string& text) {
    return scaled(
        text, {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"m", 60}, {"min", 60}, {"h", 3600}},
        "a time (2s, 500ms, 1m)");
}

double parse_share(const std::string& text) {
    const auto share = scaled(text, {{"", 0.01}, {"%", 0.01}}, "a percentage (1%, 0.5%)");
    if (share <= 0 || share > 1)
        throw CLI::ValidationError("'" + text + "' is not between 0 and 100 %");
    return share;
}

void add_rows(CLI::App& command, std::size_t& rows, const std::string& help) {
    command
        .add_option_function<std::string>(
            "--top", [&rows](const std::string& text) { rows = parse_count(text); }, help)
        ->default_str(std::to_string(rows))
        ->type_name("UINT");
}

pid_t parse_pid(const std::string& text) {
    pid_t pid = 0;
    const auto end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, pid);
    if (error != std::errc{} || rest != end || pid <= 0)
        throw CLI::ValidationError(
            "'" + text + "' is not the id of a process (pgrep NAME finds those of a name)");
    return pid;
}

// It is a file to whoever writes: what is standard output already is written there (output_file.h).
constexpr const char* standard_output = "/dev/stdout";

CLI::Validator output_name() {
    return {[](std::string& text) {
                if (text == "-") text = standard_output;
                return text.empty() ? "the name of the file is empty" : std::string{};
            },
            ""};
}

std::string snapshot_name(const std::string& output) {
    return (output == standard_output ? "shadowprof.json" : output) + ".snapshot";
}

std::array<machine::CacheGeometry::Level, 3> parse_caches(const std::string& text) {
    constexpr double kilo = 1024;
    std::array<machine::CacheGeometry::Level, 3> caches;
    std::istringstream sizes{text};
    std::string size;
    for (std::size_t level = 0; std::getline(sizes, size, ','); ++level) {
        const auto bytes = scaled(
            size,
            {{"", 1}, {"k", kilo}, {"K", kilo}, {"M", kilo * kilo}, {"G", kilo * kilo * kilo}},
            "a size (48k, 2M)");
        if (level == caches.size() || bytes >= 0x1p40)
            throw CLI::ValidationError("'" + text + "' is not up to three sizes: L1,L2,L3");
        caches[level].size = static_cast<std::uint64_t>(bytes);
    }
    if (caches[0].size == 0) throw CLI::ValidationError("'" + text + "' has no first level");
    return caches;
}

}  // namespace shadowprof::cli
