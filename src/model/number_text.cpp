#include "model/number_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace shadowprof::model {

namespace {

struct Unit {
    double size;
    const char* name;
};

constexpr std::array<Unit, 5> count_units{
    {{1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}}};
constexpr std::array<Unit, 4> time_units{{{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}}};

// Three significant digits.
std::string three_digits(double d) {
    const double size = std::abs(d);
    return size >= 99.95   ? fmt::format("{:.0f}", d)
           : size >= 9.995 ? fmt::format("{:.1f}", d)
                           : fmt::format("{:.2f}", d);
}

std::string percent_number(double share) {
    const double percent = share * 100;
    if (percent == 0) return "0";
    if (percent < 0.01) return "<0.01";
    if (percent < 1) return fmt::format("{:.2f}", percent);
    // Only the whole is shown as 100 %.
    if (percent >= 99.95) return share < 1 ? ">99.9" : fmt::format("{:.0f}", percent);
    return fmt::format("{:.1f}", percent);
}

}  // namespace

std::string count_text(std::uint64_t n) {
    if (n < 10000) return fmt::format("{}", n);
    const auto d = static_cast<double>(n);
    for (const auto& unit : count_units)
        if (d < unit.size * 999.5) return three_digits(d / unit.size) + unit.name;
    return three_digits(d / 1e18) + "E";
}

std::string counted(const char* thing, std::uint64_t n) {
    const std::string_view one = thing;
    const auto* const ending = n == 1 ? "" : one.ends_with('s') ? "es" : "s";
    return fmt::format("{} {}{}", count_text(n), one, ending);
}

std::string share_text(double share) {
    return percent_number(share) + " %";
}

std::string interval_text(double low, double high) {
    return fmt::format("{}–{} %", percent_number(low), percent_number(high));
}

std::string seconds_text(double seconds) {
    if (seconds == 0) return "0 s";
    for (const auto& unit : time_units)
        if (std::abs(seconds) < unit.size * 999.5 && unit.size < 1)
            return three_digits(seconds / unit.size) + " " + unit.name;
    if (std::abs(seconds) < 1000) return three_digits(seconds) + " s";
    return fmt::format("{:.0f} s", seconds);
}

std::string nanoseconds_text(double nanoseconds) {
    if (nanoseconds < 0.05) return "0 ns";
    if (nanoseconds < 9.95) return fmt::format("{:.1f} ns", nanoseconds);
    if (nanoseconds < 9995) return fmt::format("{:.0f} ns", nanoseconds);
    return fmt::format("{:.1f} us", nanoseconds / 1000);
}

std::string hex_text(std::uint64_t n) {
    return fmt::format("{:#x}", n);
}

}  // namespace shadowprof::model
