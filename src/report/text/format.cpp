#include "report/text/format.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "model/utf8.h"
#include "report/symbols/demangle.h"
#include "report/views/shares.h"

namespace shadowprof::report {

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

// Never looks like an integer: "2.0".
std::string floating_text(double d) {
    auto text = fmt::format("{:.6g}", d);
    if (text.find_first_of(".e") == text.npos) text += ".0";
    return text;
}

// Whether programs are likely to compute with this number. Other bit patterns are integers or
// packed data.
bool is_plausible(double d) {
    return std::isfinite(d) && std::abs(d) > 1e-30 && std::abs(d) < 1e30;
}

bool is_vector_register(const std::string& operand) {
    return operand.starts_with("xmm") || operand.starts_with("ymm") || operand.starts_with("zmm");
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
    return count_text(n) + " " + thing + (n == 1 ? "" : "s");
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

std::string hex_text(std::uint64_t n) {
    return fmt::format("{:#x}", n);
}

std::string value_text(std::uint64_t value, const ValueEntry& entry) {
    if (entry.kind != ValueKind::address && is_vector_register(entry.operand) && value != 0) {
        const double number =
            entry.bits == 64
                ? std::bit_cast<double>(value)
                : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value)));
        if (entry.bits >= 32 && std::isinf(number)) return number > 0 ? "inf" : "-inf";
        if (entry.bits >= 32 && is_plausible(number)) return floating_text(number);
    }
    if (value < 10 || entry.kind == ValueKind::address) return hex_text(value);
    if (entry.bits >= 8 && entry.bits <= 64) {
        const auto unused = 64 - entry.bits;
        const auto number = static_cast<std::int64_t>(value << unused) >> unused;
        if (number < 0 && number > -65536) return fmt::format("{} ({})", hex_text(value), number);
    }
    if (value < 1'000'000) return fmt::format("{} ({})", hex_text(value), value);
    return hex_text(value);
}

namespace {

// A share that is certain has no interval.
ShareTexts texts_of(const Share& share) {
    const bool certain = share.low == share.share && share.high == share.share;
    return {share.share, share_text(share.share),
            certain ? std::string() : interval_text(share.low, share.high)};
}

}  // namespace

ShareTexts share_texts(const Statistics& entry, const Totals& totals) {
    return texts_of(share_of(entry, totals));
}

ShareTexts share_texts(const ValueShare& value, const ValueEntry& entry) {
    return texts_of(share_of(value, entry));
}

std::string weights_text(const Profile& profile) {
    const auto weighted = weighted_instructions(profile);
    if (!weighted || *weighted == profile.coverage.instructions) return {};
    return fmt::format(
        "each sample counts by the time it stands for: counts below are of {} instructions",
        count_text(*weighted));
}

std::string function_label(const Profile& profile, const Location& l) {
    if (!l.function.empty()) return without_parameters(printable(l.function));
    return file_name(profile.modules[l.module].path) + "+" +
           hex_text(l.function_offset.value_or(l.offset));
}

namespace {

std::string offset_label(const Profile& profile, const Location& l) {
    auto label = function_label(profile, l);
    if (!l.function_offset || *l.function_offset == l.offset) return label;
    // A cold part that was moved out of its function may lie before it.
    return l.offset > *l.function_offset ? label + "+" + hex_text(l.offset - *l.function_offset)
                                         : label + "-" + hex_text(*l.function_offset - l.offset);
}

}  // namespace

std::string place_label(const Profile& profile, const Location& l) {
    if (!l.file.empty()) return fmt::format("{}:{}", file_name(l.file), l.line);
    return offset_label(profile, l);
}

std::string full_label(const Profile& profile, const Location& l) {
    const auto place = place_label(profile, l);
    return l.file.empty() ? place : function_label(profile, l) + " " + place;
}

EdgeLabels edge_labels(const Profile& profile, const Location& from, const Location& to) {
    const EdgeLabels full{full_label(profile, from), full_label(profile, to)};
    if (full.from == full.to) return {offset_label(profile, from), offset_label(profile, to)};
    const bool same_function = from.module == to.module && from.function_offset &&
                               from.function_offset == to.function_offset;
    return {full.from, same_function && !to.file.empty() ? place_label(profile, to) : full.to};
}

}  // namespace shadowprof::report
