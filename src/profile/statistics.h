// profile: Traces to hotlists. One small file a profile type; the estimators they share. It knows
// the Trace, nothing of processes, engines, symbols or files.
//
// This file: what is kept of every count so that shares, confidence intervals and merges of
// profiles follow exactly from integers. A run is k samples; sample i has n_i events, of which x_i
// belong to the entry. Executions within one sample are far from independent, so the sample is the
// unit: the share is the ratio estimator r = sum x / sum n, and its variance comes from the
// residuals x_i - r n_i, whose sum of squares follows from the sums below.
#pragma once

#include <cstdint>

namespace shadowprof::profile {

using Wide = unsigned __int128;

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
    bool operator==(const Statistics&) const = default;
};

struct Estimate {
    double share = 0;
    double low = 0;  // 95 % interval
    double high = 0;
};

// The interval is exact ([share, share]) for exhaustive totals and [0, 1] where fewer than two
// samples say nothing about variation.
Estimate estimate_share(const Statistics& entry, const Totals& totals);

}  // namespace shadowprof::profile
