#include "profile/common/convergence.h"

#include <doctest/doctest.h>

#include "base/random.h"

namespace shadowprof::profile {

namespace {

// A program in phases: each sample is of one of `phases`, by equal chances, which is in a bin of
// its own from `first` on.
ShareTracker::Sample sample_of_phases(std::size_t first, std::uint64_t phases, Random& random) {
    ShareTracker::Sample sample{};
    sample[first + random.below(phases)] = 10'000;
    return sample;
}

}  // namespace

TEST_CASE("nothing is known of a few samples") {
    ShareTracker tracker;
    Random random{1};
    CHECK(tracker.precision() == 1);
    for (int i = 0; i < 20; ++i) tracker.add(sample_of_phases(0, 2, random));
    CHECK(tracker.precision() == 1);
    // Nor of an empty one.
    tracker.add({});
    CHECK(tracker.samples() == 20);
}

TEST_CASE("the precision is half the widest interval") {
    ShareTracker tracker;
    Random random{2};
    for (int i = 0; i < 400; ++i) tracker.add(sample_of_phases(0, 2, random));
    // 1.96 * 0.5 / sqrt(400) = 0.049, and 3 / 403 / 1.96 = 0.004.
    CHECK(tracker.precision() == doctest::Approx(0.053).epsilon(0.05));
    for (int i = 0; i < 9600; ++i) tracker.add(sample_of_phases(0, 2, random));
    CHECK(tracker.precision() < 0.0105);
    CHECK(tracker.changes() == 0);
}

TEST_CASE("what never changes is known soon, but not at once") {
    ShareTracker tracker;
    ShareTracker::Sample sample{};
    sample[3] = 700;
    sample[9] = 300;
    for (int i = 0; i < 40; ++i) tracker.add(sample);
    CHECK(tracker.precision() > 0.02);
    for (int i = 0; i < 160; ++i) tracker.add(sample);
    CHECK(tracker.precision() < 0.01);
}

TEST_CASE("a program that behaves anew is not known any more") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        ShareTracker tracker;
        Random random{seed};
        for (int i = 0; i < 1000; ++i) tracker.add(sample_of_phases(0, 3, random));
        const auto before = tracker.precision();
        CHECK(before < 0.035);
        for (int i = 0; i < 20; ++i) tracker.add(sample_of_phases(10, 3, random));
        CHECK(tracker.changes() >= 1);
        CHECK(tracker.precision() > 3 * before);
        for (int i = 0; i < 2000; ++i) tracker.add(sample_of_phases(10, 3, random));
        CHECK(tracker.precision() < 0.035);
    }
}

TEST_CASE("what goes on as before is rarely taken for new") {
    std::uint64_t changes = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        ShareTracker tracker;
        Random random{seed};
        // Mostly one phase, seldom another.
        for (int i = 0; i < 2000; ++i) {
            ShareTracker::Sample sample{};
            sample[random.below(10) == 0 ? 1 : 0] = 100 + static_cast<double>(random.below(900));
            tracker.add(sample);
        }
        changes += tracker.changes();
    }
    CHECK(changes <= 20);  // of 40,000 samples
}

}  // namespace shadowprof::profile
