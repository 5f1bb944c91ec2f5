// What is kept of every count so that shares, confidence intervals and merges of profiles follow
// exactly from integers. A run is k samples; sample i has n_i events, of which x_i belong to the
// entry. Executions within one sample are far from independent, so the sample is the unit: the
// share is the ratio estimator r = sum x / sum n, and its variance comes from the residuals
// x_i - r n_i, whose sum of squares follows from the sums below.
//
// The 95 % interval is Wilson's, as of so many independent trials as would have that variance. It
// holds for shares near 0 and 1 as well, where few samples have all the variation.
//   - Its quantile is Student's t, with as many degrees of freedom as there are effective samples,
//     less one. Samples of unequal size count as N^2 / sum n^2 of equal size.
//   - An entry that was all there was in every sample shows no variation; other samples could
//     differ all the same. The trials are the effective samples then.
//   - Samples that agree may all be of one phase of the program. One sample more could be of
//     another, in which the entry is everything or nothing, and would move the share by
//     about sqrt(r (1 - r)) / k: the trials are no more than 1.5 k^2.
//   - All samples miss what makes up 1 - 0.05^(1/k) of the run in one case of twenty. The entry may
//     be absent there, so the interval reaches down to r 0.05^(1/k).
// docs/results/intervals.md says how often it holds, on simulated phases, bursts and rare entries,
// and on programs.
#pragma once

#include <cstdint>

#include "base/wide.h"

namespace shadowprof::model {

using shadowprof::Wide;

// Of a normal distribution: 95 % are within so many standard deviations.
inline constexpr double normal_quantile = 1.959963985;

// What all Traces together were of the run: where it is everything, nothing is estimated.
enum class Seen : std::uint8_t { samples, everything };

// Of a whole hotlist: n_i over all samples.
struct Totals {
    std::uint64_t samples = 0;
    std::uint64_t total = 0;    // sum of n_i
    Wide total_squares = 0;     // sum of n_i^2
    std::uint64_t unknown = 0;  // part of total that has no entry
    bool exhaustive = false;    // every event of the run was seen: nothing is estimated

    void add_sample(std::uint64_t n);
    void merge(const Totals& other);
    bool operator==(const Totals&) const = default;
};

// Of one entry.
struct Statistics {
    std::uint64_t samples = 0;  // in how many samples it occurred
    std::uint64_t count = 0;    // sum of x_i
    Wide squares = 0;           // sum of x_i^2
    Wide products = 0;          // sum of x_i n_i

    void add_sample(std::uint64_t x, std::uint64_t n);
    void merge(const Statistics& other);
    // As if each sample had seen this entry more or less often by the same factor: for estimators
    // that know how many occurrences they missed, not in which samples.
    Statistics scaled_to(std::uint64_t new_count) const;
    bool operator==(const Statistics&) const = default;
};

// 0 of an empty whole. No more than 1, although a file that was made by hand may contradict itself.
double fraction(double part, double whole);

struct Estimate {
    double share = 0;
    double low = 0;  // 95 % interval
    double high = 0;
};

// The interval is exact ([share, share]) for exhaustive totals and [0, 1] where fewer than two
// effective samples say nothing about variation.
Estimate estimate_share(const Statistics& entry, const Totals& totals);

// The total itself is an estimate, of what samples stand for: by how much it may be wrong by chance
// alone, in parts of it.
double relative_error_of(const Totals& totals);

// A share is known to ± so much: half of its interval.
double reach_of(const Estimate& estimate);

// The same for a value whose count a counting sample estimated with probability 1/inverse: it is
// not known how often the value came before it was listed, even where every event was seen.
Estimate estimate_value_share(const Statistics& value, const Totals& executions,
                              std::uint64_t probability_inverse);

}  // namespace shadowprof::model
