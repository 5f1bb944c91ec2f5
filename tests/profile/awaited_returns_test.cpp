#include "profile/common/awaited_returns.h"

#include <doctest/doctest.h>

#include <vector>

#include "test_program.h"

namespace shadowprof::profile {

TEST_CASE("returns are told to what awaits them, innermost first, and skipped ones are given up") {
    AwaitedReturns<int> awaited;
    std::vector<int> given_up;
    const auto give_up = [&](int event) { given_up.push_back(event); };
    CHECK_FALSE(awaited.has_call());
    CHECK(awaited.returned_to(at(1), give_up).empty());
    for (int n = 1; n <= 4; ++n) {
        awaited.call(at(static_cast<std::uint64_t>(n)), give_up);
        awaited.await(n);
    }
    awaited.await(40);
    CHECK(awaited.returned_to(at(9), give_up).empty());
    CHECK(awaited.returned_to(at(4), give_up) == std::vector{4, 40});
    // longjmp: the call that returns to 3 is skipped.
    CHECK(awaited.returned_to(at(2), give_up) == std::vector{2});
    CHECK(given_up == std::vector{3});
    awaited.give_up_all(give_up);
    CHECK(given_up == std::vector{3, 1});
    CHECK_FALSE(awaited.has_call());
}

TEST_CASE("deep recursion gives up its outermost calls") {
    AwaitedReturns<int> awaited;
    std::vector<int> given_up;
    const auto give_up = [&](int event) { given_up.push_back(event); };
    for (int n = 0; n < 5000; ++n) {
        awaited.call(at(1), give_up);
        awaited.await(n);
    }
    CHECK(given_up.size() == 904);
    CHECK(given_up.front() == 0);
    CHECK(awaited.returned_to(at(1), give_up) == std::vector{4999});
}

}  // namespace shadowprof::profile
