#include "model/statistics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"

namespace shadowprof::model {

TEST_CASE("sums are those of the samples") {
    Totals totals;
    Statistics entry;
    totals.add_sample(10);
    entry.add_sample(3, 10);
    totals.add_sample(20);
    entry.add_sample(0, 20);
    totals.add_sample(30);
    entry.add_sample(5, 30);
    CHECK(totals.samples == 3);
    CHECK(totals.total == 60);
    CHECK(totals.total_squares == 1400);  // 100 + 400 + 900
    CHECK(entry.samples == 2);
    CHECK(entry.count == 8);
    CHECK(entry.squares == 34);    // 9 + 25
    CHECK(entry.products == 180);  // 30 + 150
}

TEST_CASE("sums do not overflow for a run of 2^40 events in one sample") {
    Totals totals;
    totals.add_sample(std::uint64_t{1} << 40);
    CHECK(totals.total_squares == Wide{1} << 80);
}

TEST_CASE("merging profiles is adding their samples") {
    Totals first, second, both;
    Statistics x, y, z;
    first.add_sample(10);
    x.add_sample(4, 10);
    second.add_sample(7);
    y.add_sample(1, 7);
    both.add_sample(10);
    both.add_sample(7);
    z.add_sample(4, 10);
    z.add_sample(1, 7);
    first.unknown = 2;
    second.unknown = 3;
    both.unknown = 5;
    first.merge(second);
    x.merge(y);
    CHECK(first == both);
    CHECK(x == z);
}

TEST_CASE("a merged profile is exhaustive if all of its parts are") {
    const auto merged = [](bool first, bool second) {
        Totals a, b;
        a.add_sample(1);
        b.add_sample(1);
        a.exhaustive = first;
        b.exhaustive = second;
        a.merge(b);
        return a.exhaustive;
    };
    CHECK(merged(true, true));
    CHECK_FALSE(merged(true, false));
    CHECK_FALSE(merged(false, true));
    Totals nothing, all;
    all.add_sample(1);
    all.exhaustive = true;
    nothing.merge(all);
    CHECK(nothing.exhaustive);
}

TEST_CASE("scaling keeps the shape of the variation") {
    Statistics entry;
    entry.add_sample(2, 10);
    entry.add_sample(4, 10);
    const auto scaled = entry.scaled_to(18);  // three times as often in each sample: 6 and 12
    Statistics expected;
    expected.add_sample(6, 10);
    expected.add_sample(12, 10);
    CHECK(scaled == expected);
    CHECK(entry.scaled_to(6) == entry);
    CHECK(entry.scaled_to(0) == Statistics{});
}

TEST_CASE("an exhaustive share has no interval") {
    Totals totals;
    totals.exhaustive = true;
    totals.add_sample(8);
    Statistics entry;
    entry.add_sample(2, 8);
    const auto estimate = estimate_share(entry, totals);
    CHECK(estimate.share == 0.25);
    CHECK(estimate.low == 0.25);
    CHECK(estimate.high == 0.25);
}

TEST_CASE("one sample says nothing about variation") {
    Totals totals;
    totals.add_sample(1000);
    Statistics entry;
    entry.add_sample(500, 1000);
    CHECK(estimate_share(entry, totals).low == 0);
    CHECK(estimate_share(entry, totals).high == 1);

    // Nor do two of which one is next to nothing: 1000^2 / (999^2 + 1) is about one sample.
    totals.add_sample(1);
    entry.add_sample(1, 1);
    CHECK(estimate_share(entry, totals).low == 0);
    CHECK(estimate_share(entry, totals).high == 1);
}

TEST_CASE("an interval worked out by hand") {
    // Four samples of 1000 events with 200, 300, 300 and 400 of the entry: share 0.3, residuals
    // -100, 0, 0, 100. s^2 = 20000 * 4/3 / 4000^2 = 0.0016667, as of 0.3 * 0.7 / s^2 = 126 trials;
    // but four samples stand for 24 at most. t(3) = 3.1824, t^2/24 = 0.421986:
    // (0.3 + 0.210993 +- 0.364877) / 1.421986.
    Totals totals;
    Statistics entry;
    for (const auto x : {200u, 300u, 300u, 400u}) {
        totals.add_sample(1000);
        entry.add_sample(x, 1000);
    }
    const auto estimate = estimate_share(entry, totals);
    CHECK(estimate.share == doctest::Approx(0.3));
    CHECK(estimate.low == doctest::Approx(0.10275).epsilon(1e-4));
    CHECK(estimate.high == doctest::Approx(0.61595).epsilon(1e-4));
    CHECK(reach_of(estimate) == doctest::Approx(0.25660).epsilon(1e-4));
}

TEST_CASE("samples that agree may all be of one phase") {
    // Eight samples, each with 733 of 1000. That they agree does not make the share certain.
    Totals totals;
    Statistics entry;
    for (int i = 0; i < 8; ++i) {
        totals.add_sample(1000);
        entry.add_sample(733, 1000);
    }
    const auto estimate = estimate_share(entry, totals);
    CHECK(estimate.low <= 0.733 * std::pow(0.05, 1.0 / 8));
    CHECK(estimate.high > 0.8);
}

TEST_CASE("three samples that agree are no proof") {
    // Three stacks, all the same: Wilson's interval for 3 of 3 is [3 / (3 + t^2), 1], t(2)
    // = 4.3027.
    Totals totals;
    Statistics entry;
    for (int i = 0; i < 3; ++i) {
        totals.add_sample(1);
        entry.add_sample(1, 1);
    }
    const auto estimate = estimate_share(entry, totals);
    CHECK(estimate.share == 1);
    CHECK(estimate.low == doctest::Approx(0.13945).epsilon(1e-4));
    CHECK(estimate.high == doctest::Approx(1));
}

namespace {

// How often the interval holds the true share, over many runs of `samples` samples. A sample has
// the entry with probability `presence`, and then makes of it a share around `share_if_present`.
double coverage(int samples, double presence, double share_if_present, double spread,
                bool unequal_sizes) {
    constexpr int runs = 4000;
    Random random{static_cast<std::uint64_t>(samples) * 1000 +
                  static_cast<std::uint64_t>(presence * 100)};
    const double truth = presence * share_if_present;
    int held = 0;
    for (int run = 0; run < runs; ++run) {
        Totals totals;
        Statistics entry;
        for (int i = 0; i < samples; ++i) {
            const auto n = unequal_sizes ? 100 + random.below(20000) : 10000;
            const double share = random.chance(presence)
                                     ? share_if_present * (1 + spread * (2 * random.unit() - 1))
                                     : 0;
            totals.add_sample(n);
            entry.add_sample(static_cast<std::uint64_t>(share * static_cast<double>(n) + 0.5), n);
        }
        const auto estimate = estimate_share(entry, totals);
        CHECK(estimate.low <= estimate.share);
        CHECK(estimate.share <= estimate.high);
        held += estimate.low <= truth && truth <= estimate.high;
    }
    return static_cast<double>(held) / runs;
}

// A program whose samples are of this or that phase and of very different sizes.
struct Population {
    std::string name;
    double presence;        // of a sample being of the phase
    double share_in_it;     // of the entry, in a sample of that phase
    double share_outside;   // and in others
    double spread;          // of shares within a phase, relative
    double tail;            // sizes are lognormal with this sigma; 0: all are equal
    double size_in_it = 1;  // of samples of the phase, relative to others
};

// How often the interval holds the true share, over many runs of `samples` samples in which the
// entry was seen.
double coverage(const Population& p, int samples) {
    constexpr int runs = 4000;
    Random random{static_cast<std::uint64_t>(samples)};
    const auto normal = [&] {
        return std::sqrt(-2 * std::log(1 - random.unit())) * std::cos(6.283185307 * random.unit());
    };
    const double in_it = p.presence * p.size_in_it, outside = 1 - p.presence;
    const double truth = (in_it * p.share_in_it + outside * p.share_outside) / (in_it + outside);
    int held = 0, seen = 0;
    for (int run = 0; run < runs; ++run) {
        Totals totals;
        Statistics entry;
        for (int i = 0; i < samples; ++i) {
            const bool is_in_it = random.chance(p.presence);
            const auto n = 1 + std::llround(10000 * std::exp(p.tail * normal()) *
                                            (is_in_it ? p.size_in_it : 1));
            const double share = std::clamp((is_in_it ? p.share_in_it : p.share_outside) *
                                                (1 + p.spread * (2 * random.unit() - 1)),
                                            0.0, 1.0);
            totals.add_sample(static_cast<std::uint64_t>(n));
            entry.add_sample(static_cast<std::uint64_t>(share * static_cast<double>(n) + 0.5),
                             static_cast<std::uint64_t>(n));
        }
        if (entry.count == 0) continue;
        ++seen;
        const auto estimate = estimate_share(entry, totals);
        CHECK(estimate.low <= estimate.share);
        CHECK(estimate.share <= estimate.high);
        held += estimate.low <= truth && truth <= estimate.high;
    }
    return static_cast<double>(held) / seen;
}

}  // namespace

TEST_CASE("95 % intervals hold the truth in 95 % of runs") {
    // 4000 runs: the standard error of a coverage of 95 % is 0.35 %. A ratio estimator's few
    // samples of unequal size, or far from normal, cost it one or two percent.
    CHECK(coverage(5, 1, 0.3, 0.5, false) > 0.92);
    CHECK(coverage(30, 1, 0.3, 0.5, false) > 0.935);
    CHECK(coverage(30, 1, 0.3, 0.5, true) > 0.92);
    CHECK(coverage(100, 1, 0.01, 0.9, true) > 0.93);
    CHECK(coverage(30, 0.5, 0.3, 0.5, false) > 0.93);
    CHECK(coverage(30, 0.5, 0.3, 0.5, true) > 0.92);
    // They are not bought with width: of what varies in every sample, not much more than 95 %.
    CHECK(coverage(30, 1, 0.3, 0.5, false) < 0.97);
    CHECK(coverage(30, 0.5, 0.3, 0.5, true) < 0.97);
}

TEST_CASE("few samples of programs with phases and heavy tails: intervals hold all the same") {
    const Population populations[] = {
        {"one loop", 1, 0.3, 0, 0.5, 0},
        {"one loop, unequal samples", 1, 0.3, 0, 0.5, 0.8},
        {"a phase without it", 0.9, 0.7, 0, 0.001, 0},
        {"a rare phase without it", 0.97, 0.7, 0, 0.001, 0},
        {"a rare phase of nothing else", 0.03, 1, 0.3, 0.001, 0},
        {"nearly all or nothing", 0.7, 1, 0, 0, 0.8},
        {"nearly always all", 0.9, 1, 0, 0, 0.8},
        {"seldom", 0.1, 0.9, 0, 0, 0.8},
        {"large samples lack it", 0.3, 0.05, 0.7, 0.001, 0.7, 3},
        {"small samples lack it", 0.1, 0.02, 0.5, 0.001, 1, 0.3},
        {"heavy tails", 0.4, 0.8, 0.1, 0.2, 1.2},
    };
    for (const auto& p : populations)
        for (const int samples : {5, 10, 20}) {
            CAPTURE(p.name);
            CAPTURE(samples);
            const auto held = coverage(p, samples);
            CAPTURE(held);
            MESSAGE(p.name, " ", samples, ": ", held);
            CHECK(held > 0.9);
        }
}

TEST_CASE("entries that few samples have keep honest intervals") {
    // On average 2 of 40 samples have the entry. In e^-2 = 13 % of the runs none does, and there is
    // no entry and no interval; in all others the interval should hold.
    CHECK(coverage(40, 0.05, 0.5, 0.3, false) > 0.865 * 0.94);
    CHECK(coverage(40, 0.15, 0.5, 0.3, true) > 0.925);
}

}  // namespace shadowprof::model
