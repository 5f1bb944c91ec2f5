#include "sampling/kinds/sample_length.h"

#include <doctest/doctest.h>

#include "base/random.h"

namespace shadowprof::sampling {

TEST_CASE("samples are as long as they are wanted, if none ends early") {
    SampleLength length{500, 60'000};
    CHECK(length.next() == 60'000);
    length.ended_in_time();
    CHECK(length.next() == 60'000);
    CHECK_FALSE(length.is_too_long());
}

TEST_CASE("one of fifty ends early, whatever it is that ends them") {
    // Calls that end samples are `apart` instructions apart, on average.
    for (const double apart : {1e4, 1e6}) {
        SampleLength length{10, 1'000'000'000};
        Random random{7};
        int early = 0;
        constexpr int samples = 20'000;
        for (int i = 0; i < samples; ++i) {
            if (random.exponential(apart) < static_cast<double>(length.next())) {
                ++early;
                length.ended_early();
            } else {
                length.ended_in_time();
            }
        }
        CHECK(early > samples / 70);
        CHECK(early < samples / 40);
        CHECK_FALSE(length.is_too_long());
    }
}

TEST_CASE("a single early end is soon made up for") {
    SampleLength length{10, 1'000'000};
    length.ended_early();
    for (int i = 0; i < 13; ++i) length.ended_in_time();
    CHECK(length.next() == 1'000'000);
}

TEST_CASE("where even the shortest end early, all are too long") {
    SampleLength length{500, 2000};
    length.ended_early();
    CHECK(length.next() == 500);
    CHECK_FALSE(length.is_too_long());  // once is no rule
    length.ended_early();
    CHECK(length.is_too_long());
}

}  // namespace shadowprof::sampling
