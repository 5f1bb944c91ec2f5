#include "report/diff/change.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "report/tuning.h"

namespace shadowprof::report {

namespace {

// 99.95 % quantiles of Student's t for 1, 2, … degrees of freedom.
constexpr std::array t_quantiles{636.619, 31.599, 12.924, 8.610, 6.869, 5.959, 5.408, 5.041,
                                 4.781,   4.587,  4.437,  4.318, 4.221, 4.140, 4.073, 4.015,
                                 3.965,   3.922,  3.883,  3.850, 3.819, 3.792, 3.768, 3.745,
                                 3.725,   3.707,  3.690,  3.674, 3.659, 3.646};

double t_quantile(std::size_t degrees_of_freedom) {
    if (degrees_of_freedom <= t_quantiles.size()) return t_quantiles[degrees_of_freedom - 1];
    // The first term of the Cornish–Fisher expansion.
    const double z = tuning::normal_quantile;
    return z + (z * z * z + z) / (4.0 * static_cast<double>(degrees_of_freedom));
}

double reach(const Amount& a) {
    return std::max(a.high - a.value, a.value - a.low);
}

double run_to_run(const std::vector<double>& runs, double mean) {
    if (runs.size() < 2) return 0;
    double squares = 0;
    for (const double x : runs) squares += (x - mean) * (x - mean);
    const auto n = static_cast<double>(runs.size());
    return t_quantile(runs.size() - 1) * std::sqrt(squares / (n - 1)) * std::sqrt(1 + 1 / n);
}

// Code that occurs in few samples may well be missing from all samples of another profile.
bool may_be_missed(const Amount& seen, const Absence& absence) {
    return absence.samples != 0 &&
           std::pow(1 - std::min(seen.presence, 1.0), static_cast<double>(absence.samples)) >
               tuning::least_chance;
}

bool are_too_few(double samples) {
    return samples > 0 && samples < tuning::fewest_samples_compared;
}

}  // namespace

Change change_of(std::string name, const std::vector<const Amount*>& bases,
                 const std::vector<Absence>& absent_in_base, const Amount* now,
                 const Absence& absent_now) {
    Change c;
    c.name = std::move(name);
    std::vector<double> runs;
    double squares = 0, samples = 0;
    const Amount* seen = now;
    bool base_may_miss_it = now != nullptr;
    for (std::size_t i = 0; i < bases.size(); ++i) {
        const auto& a = bases[i] ? *bases[i] : absent_in_base[i].amount;
        runs.push_back(a.value);
        squares += reach(a) * reach(a);
        samples += a.samples;
        if (bases[i]) {
            base_may_miss_it = false;
            if (!seen) seen = bases[i];
        } else if (now) {
            base_may_miss_it &= may_be_missed(*now, absent_in_base[i]);
        }
    }
    const auto n = static_cast<double>(runs.size());
    for (const double x : runs) c.base += x / n;
    const auto& latest = now ? *now : absent_now.amount;
    c.now = latest.value;
    const double sampling =
        tuning::widened * std::sqrt(squares / (n * n) + reach(latest) * reach(latest));
    c.noise = std::max(sampling, run_to_run(runs, c.base));
    c.has_too_few_samples = are_too_few(samples) || are_too_few(latest.samples);
    if (base_may_miss_it || (!now && may_be_missed(*seen, absent_now)))
        c.noise = std::max(c.noise, std::abs(c.difference()));
    return c;
}

}  // namespace shadowprof::report
