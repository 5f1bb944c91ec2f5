#include "profile/common/thinned_list.h"

#include <algorithm>
#include <cmath>

namespace shadowprof::profile {

std::uint64_t draw_failures(std::uint64_t inverse, Random& random) {
    if (inverse == 1) return 0;
    const double rate = -std::log1p(-1 / static_cast<double>(inverse));
    return static_cast<std::uint64_t>(random.exponential(1 / rate));
}

std::uint64_t lowered(std::uint64_t inverse) {
    return inverse + std::max<std::uint64_t>(1, inverse / 8);
}

}  // namespace shadowprof::profile
