#include "report/diff/diff_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text/format.h"

namespace shadowprof::report {

namespace {

std::string percent_text(double x) {
    const auto size = std::abs(x) * 100;
    constexpr double least_told = 0.0001;
    if (size < least_told) return fmt::format("{}<{} %", x < 0 ? '-' : '+', least_told);
    return fmt::format("{:+.{}f} %", x * 100,
                       size >= 100   ? 0
                       : size >= 10  ? 1
                       : size >= 0.1 ? 2
                                     : 4);
}

}  // namespace

std::string amount_text(double amount, Unit unit) {
    switch (unit) {
        case Unit::count:
            return count_text(static_cast<std::uint64_t>(std::llround(std::min(amount, 9e18))));
        case Unit::share:
            return share_text(amount);
        case Unit::waiting:
            return nanoseconds_text(amount);
    }
    return {};
}

std::string difference_text(const Change& c) {
    if (c.base == 0) return c.now == 0 ? "" : "new";
    if (c.now == 0) return "gone";
    return percent_text(c.difference() / c.base);
}

std::string noise_text(const Change& c, Unit unit) {
    if (c.noise == 0) return "";
    if (c.base == 0) return "±" + amount_text(c.noise, unit);
    return "±" + percent_text(c.noise / c.base).substr(1);
}

std::string whole_text(const Change& c, Unit unit, std::string_view of) {
    if (c.has_too_few_samples)
        return fmt::format("{} to {} {}: too few samples to compare them",
                           amount_text(c.base, unit), amount_text(c.now, unit), of);
    const auto noise = noise_text(c, unit);
    return fmt::format("{} to {} {}: {}{}", amount_text(c.base, unit), amount_text(c.now, unit), of,
                       c.is_real() ? difference_text(c) : "no real change",
                       noise.empty() ? "" : fmt::format(" (noise {})", noise));
}

std::string verdict_text(const Verdict& v) {
    auto text = fmt::format("{}: {} to {}", v.change.name, amount_text(v.change.base, v.unit),
                            amount_text(v.change.now, v.unit));
    const auto difference = difference_text(v.change);
    const auto noise = noise_text(v.change, v.unit);
    if (!difference.empty())
        text += fmt::format(", {}{}", difference, noise.empty() ? "" : " " + noise);
    for (std::size_t i = 0; i < v.causes.size(); ++i) {
        const auto& c = v.causes[i];
        const auto part = v.change.base > 0 ? c.difference() / v.change.base : 0;
        text += fmt::format("{}{} {}", i ? ", " : "; most in ", c.name, percent_text(part));
    }
    return text;
}

std::string bases_text(const Diff& diff) {
    return diff.bases.size() == 1 ? diff.bases[0].name : counted("baseline", diff.bases.size());
}

std::vector<const Change*> real_changes(const DiffList& list, std::size_t most) {
    std::vector<const Change*> real;
    for (const auto& c : list.changes) {
        if (real.size() == most) break;
        if (c.is_real()) real.push_back(&c);
    }
    return real;
}

std::size_t count_real(const DiffList& list) {
    return static_cast<std::size_t>(std::count_if(list.changes.begin(), list.changes.end(),
                                                  [](const Change& c) { return c.is_real(); }));
}

}  // namespace shadowprof::report
