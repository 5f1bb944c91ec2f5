#include "sampling/schedule/allotment.h"

#include <doctest/doctest.h>

#include "sampling/schedule/budget.h"

using namespace shadowprof;
using namespace shadowprof::sampling;

namespace {

struct Time {
    Clock::time_point now{};
    TimeSource source() {
        return [this] { return now; };
    }
    void pass(Seconds time) { now += std::chrono::duration_cast<Clock::duration>(time); }
};

}  // namespace

TEST_CASE("time passes as fast as the part of the budget says, from when it says so") {
    Time time;
    Allotment allotment{0.5, Seconds{0}, time.source()};
    time.pass(Seconds{2});
    CHECK(allotment.time().count() == doctest::Approx(1));
    allotment.set_part(0.1);
    CHECK(allotment.time().count() == doctest::Approx(1));
    time.pass(Seconds{10});
    CHECK(allotment.time().count() == doctest::Approx(2));
}

TEST_CASE("two that have half of a budget each spend what one that has all of it does") {
    constexpr double share = 0.01;
    constexpr Seconds price{0.001};
    const auto spent_in = [&](double part) {
        Time time;
        const auto allotment = std::make_shared<Allotment>(part, Seconds{0}, time.source());
        Budget budget{share, Seconds{0}, {}, Random{1}, time.source(), allotment};
        Seconds spent{0};
        while (time.now < Clock::time_point{} + std::chrono::seconds{100}) {
            budget.spent_on_sample(price);
            spent += price;
            time.pass(budget.mean_wait());
        }
        return spent / Seconds{1};
    };
    CHECK(spent_in(1) == doctest::Approx(1).epsilon(0.05));
    CHECK(spent_in(0.5) == doctest::Approx(0.5).epsilon(0.05));
}

TEST_CASE("a stake is spent soon, and once") {
    Time time;
    constexpr double share = 0.01;
    constexpr Seconds price{0.0005}, stake{0.05};
    Budget budget{share, stake, {}, Random{1}, time.source()};
    Seconds spent{0}, after_a_second{0};
    while (time.now < Clock::time_point{} + std::chrono::seconds{20}) {
        budget.spent_on_sample(price);
        spent += price;
        time.pass(budget.mean_wait());
        if (time.now < Clock::time_point{} + std::chrono::seconds{1}) after_a_second = spent;
    }
    CHECK(after_a_second > stake * 0.5);
    CHECK(spent.count() == doctest::Approx(0.25).epsilon(0.05));
}
