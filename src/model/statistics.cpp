#include "model/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shadowprof::model {

namespace {

// 97.5 % quantiles of Student's t for 1, 2, … degrees of freedom.
constexpr std::array t_quantiles{12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                                 2.2622,  2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
                                 2.1098,  2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639,
                                 2.0595,  2.0555, 2.0518, 2.0484, 2.0452, 2.0423};

double t_quantile(double degrees_of_freedom) {
    const auto whole = static_cast<std::size_t>(degrees_of_freedom);
    if (whole <= t_quantiles.size()) return t_quantiles[whole - 1];
    // Two terms of the Cornish–Fisher expansion, exact to four digits from here on.
    const double z = normal_quantile;
    return z + (z * z * z + z) / (4.0 * static_cast<double>(whole));
}

// Chance that something which samples could have shown escapes all of them.
constexpr double unlikely = 0.05;
// Trials that k samples stand for at most, over k^2. By simulation: less costs programs of one
// phase wide intervals, more costs programs of several their coverage.
constexpr double most_trials = 1.5;

struct Interval {
    double low = 0;
    double high = 0;
};

Interval wilson(double proportion, double trials, double quantile) {
    const double q2_over_n = quantile * quantile / trials;
    const double centre = proportion + q2_over_n / 2;
    const double reach =
        std::sqrt(proportion * (1 - proportion) * q2_over_n + q2_over_n * q2_over_n / 4);
    return {(centre - reach) / (1 + q2_over_n), (centre + reach) / (1 + q2_over_n)};
}

}  // namespace

double fraction(double part, double whole) {
    return whole > 0 ? std::min(1.0, part / whole) : 0;
}

double relative_error_of(const Totals& totals) {
    if (totals.exhaustive) return 0;
    if (totals.samples < 2 || totals.total == 0) return 1;
    const auto n = static_cast<double>(totals.samples);
    const auto mean = static_cast<double>(totals.total) / n;
    const auto variance =
        std::max(0.0, static_cast<double>(totals.total_squares) / n - mean * mean);
    return normal_quantile * std::sqrt(variance / (n - 1)) / mean;
}

void Totals::add_sample(std::uint64_t n) {
    ++samples;
    total += n;
    total_squares += Wide{n} * n;
}

void Totals::merge(const Totals& other) {
    exhaustive = (exhaustive || samples == 0) && (other.exhaustive || other.samples == 0) &&
                 (exhaustive || other.exhaustive);
    samples += other.samples;
    total += other.total;
    total_squares += other.total_squares;
    unknown += other.unknown;
}

void Statistics::add_sample(std::uint64_t x, std::uint64_t n) {
    if (x == 0) return;
    ++samples;
    count += x;
    squares += Wide{x} * x;
    products += Wide{x} * n;
}

void Statistics::merge(const Statistics& other) {
    samples += other.samples;
    count += other.count;
    squares += other.squares;
    products += other.products;
}

Statistics Statistics::scaled_to(std::uint64_t new_count) const {
    if (new_count == count) return *this;
    if (new_count == 0 || count == 0) return {};
    const auto factor = static_cast<long double>(new_count) / static_cast<long double>(count);
    const auto scale = [](Wide sum, long double by) {
        return static_cast<Wide>(static_cast<long double>(sum) * by + 0.5L);
    };
    return {samples, new_count, scale(squares, factor * factor), scale(products, factor)};
}

Estimate estimate_share(const Statistics& entry, const Totals& totals) {
    if (totals.total == 0) return {0, 0, totals.exhaustive ? 0.0 : 1.0};
    const auto total = static_cast<long double>(totals.total);
    const auto share = static_cast<double>(static_cast<long double>(entry.count) / total);
    if (totals.exhaustive) return {share, share, share};

    const auto effective =
        static_cast<double>(total * total / static_cast<long double>(totals.total_squares));
    const auto degrees_of_freedom = std::round(effective) - 1;
    if (degrees_of_freedom < 1) return {share, 0, 1};

    const auto r = static_cast<long double>(share);
    const auto residuals =
        std::max(0.0L, static_cast<long double>(entry.squares) -
                           2 * r * static_cast<long double>(entry.products) +
                           r * r * static_cast<long double>(totals.total_squares));
    const auto variance =
        static_cast<double>(residuals / (total * total)) * effective / (effective - 1);
    auto trials = effective;
    if (share > 0 && share < 1)
        trials = std::min(share * (1 - share) / variance, most_trials * effective * effective);
    const auto [low, high] = wilson(std::min(share, 1.0), trials, t_quantile(degrees_of_freedom));
    const auto seen = std::pow(unlikely, 1 / effective);
    return {share, std::max(0.0, std::min(low, share * seen)),
            std::max(share, std::min(high, 1.0))};
}

double reach_of(const Estimate& estimate) {
    return (estimate.high - estimate.low) / 2;
}

Estimate estimate_value_share(const Statistics& value, const Totals& executions,
                              std::uint64_t probability_inverse) {
    auto estimate = estimate_share(value, executions);
    if (probability_inverse == 1 || executions.total == 0) return estimate;
    // What came before is geometric; its mean, m - 1, is in the count. With 95 % it lies between
    // nothing and 3 m: (1 - 1/m)^(3 m) < 0.05.
    const auto inverse = static_cast<double>(probability_inverse);
    const auto total = static_cast<double>(executions.total);
    estimate.low = std::max(0.0, estimate.low - (inverse - 1) / total);
    estimate.high = std::min(1.0, estimate.high + (2 * inverse + 1) / total);
    return estimate;
}

}  // namespace shadowprof::model
