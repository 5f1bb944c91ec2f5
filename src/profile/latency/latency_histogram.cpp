#include "profile/latency/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shadowprof::profile {

std::size_t latency_bin(double nanoseconds) {
    if (!(nanoseconds >= 1)) return 0;
    const auto bin = 1 + static_cast<std::size_t>(4 * std::log2(nanoseconds));
    return std::min(bin, latency_bins - 1);
}

double latency_bin_begin(std::size_t bin) {
    return bin == 0 ? 0 : std::exp2(static_cast<double>(bin - 1) / 4);
}

double latency_quantile(const std::array<std::uint64_t, latency_bins>& histogram, double share) {
    const auto all = std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0});
    const auto wanted = share * static_cast<double>(all);
    double below = 0;
    for (std::size_t bin = 0; bin < latency_bins; ++bin) {
        const auto here = static_cast<double>(histogram[bin]);
        if (here > 0 && below + here >= wanted) {
            const auto begin = latency_bin_begin(bin), end = latency_bin_begin(bin + 1);
            return begin + (end - begin) * (wanted - below) / here;
        }
        below += here;
    }
    return 0;
}

}  // namespace shadowprof::profile
