#include "machine/calibration.h"

#include <doctest/doctest.h>

using namespace shadowprof;
using namespace shadowprof::machine;

TEST_CASE("why the clock cannot be used") {
    CHECK(why_clock_is_unusable("fpu tsc constant_tsc nonstop_tsc", true, 20).empty());
    CHECK(!why_clock_is_unusable("fpu tsc", true, 20).empty());
    CHECK(!why_clock_is_unusable("fpu tsc constant_tsc", true, 2000).empty());
    CHECK(!why_clock_is_unusable("fpu tsc constant_tsc", false, 0).empty());
}

TEST_CASE("a calibration is written and read back, on its own machine only") {
    machine::LatencyScale scale;
    scale.clock_is_usable = true;
    scale.nanoseconds_per_tick = 0.43478;
    scale.resolution_ticks = 26;
    scale.overhead_ticks = 45.25;
    scale.typical_ns = {1.5, 6, 50, 120};
    scale.limits_ns = {3, 17.3, 77.5};
    scale.longest_ns = 1200;
    scale.caches.levels[2].size = 16u << 20;
    const auto text = written(scale, "a machine");
    machine::LatencyScale back;
    REQUIRE(read_back(text, "a machine", back));
    CHECK(back == scale);
    CHECK(!read_back(text, "another machine", back));
    CHECK(!read_back(text.substr(0, text.size() - 8), "a machine", back));
    CHECK(!read_back("", "a machine", back));
}

TEST_CASE("of a cache that is said to be huge, what times confirm is believed") {
    constexpr std::uint64_t megabyte = 1u << 20;
    // The processor says 508 MB for all of its parts; one part has 32.
    const auto one_part = [](std::uint64_t size) { return size <= 32 * megabyte ? 40.0 : 133.0; };
    CHECK(size_by_time(508 * megabyte, 4 * megabyte, 75, one_part) == 32 * megabyte);
    const auto all = [](std::uint64_t) { return 40.0; };
    CHECK(size_by_time(508 * megabyte, 4 * megabyte, 75, all) == 508 * megabyte);
    CHECK(size_by_time(24 * megabyte, 4 * megabyte, 75, all) == 24 * megabyte);
}

TEST_CASE("there is a first level, and each is larger than the one before") {
    const auto caches = caches_of_this_machine();
    CHECK(caches.levels[0].size >= 4096);
    for (std::size_t level = 1; level < caches.levels.size(); ++level)
        if (const auto size = caches.levels[level].size)
            CHECK(size > caches.levels[level - 1].size);
    CHECK(caches.line >= 32);
    CHECK(caches.pages_in_tlb >= 16);
}
