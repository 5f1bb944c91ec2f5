// Times in bins that grow by a quarter of their logarithm to base 2, so that a bin says a time to
// within 10 % whatever it is. The first bin is for what took no time that could be seen.
#pragma once

#include <array>
#include <cstdint>

namespace shadowprof::profile {

// Up to 2^17 ns, and what is above.
inline constexpr std::size_t latency_bins = 1 + 17 * 4 + 1;

std::size_t latency_bin(double nanoseconds);
// Where it begins; that of the bin after the last one is where the last one ends.
double latency_bin_begin(std::size_t bin);
// Below which that share of the counted times lies, by their bins.
double latency_quantile(const std::array<std::uint64_t, latency_bins>& histogram, double share);

}  // namespace shadowprof::profile
