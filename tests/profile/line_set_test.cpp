#include "profile/latency/line_set.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

namespace shadowprof::profile {

TEST_CASE("a line is new once after each clearing, however often it is cleared") {
    LineSet lines;
    std::mt19937_64 random{1};
    constexpr std::uint64_t last = (1ull << 50) - 1;  // of 56 bits of address
    for (int round = 0; round < 10'000; ++round) {
        std::set<std::uint64_t> known;
        for (int n = 0; n < (round == 5000 ? 3000 : 8); ++n) {
            const auto line = random() % 3 == 0 ? last - random() % 10 : random() % 10;
            REQUIRE(lines.insert(line) == known.insert(line).second);
            const auto far = random() & last;
            REQUIRE(lines.insert(far) == known.insert(far).second);
        }
        REQUIRE(lines.size() == known.size());
        lines.clear();
        REQUIRE(lines.size() == 0);
    }
}

}  // namespace shadowprof::profile
