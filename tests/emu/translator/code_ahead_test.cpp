#include "emu/translator/code_ahead.h"

#include <doctest/doctest.h>

using namespace shadowprof;
using emu::translator::CodeAhead;
using emu::translator::Version;

namespace {

constexpr auto lean = Version::lean;

Address next(CodeAhead& ahead) {
    const auto code = ahead.take();
    return code ? code->pc : Address{0};
}

}  // namespace

TEST_CASE("what is nearest is translated first, and of that what was added last") {
    CodeAhead ahead;
    ahead.add({Address{1}, lean, false, 2});
    ahead.add({Address{2}, lean, false, 0});
    ahead.add({Address{3}, lean, false, 2});
    ahead.add({Address{4}, lean, false, 9}, 1);
    CHECK(ahead.nearest() == 0);
    CHECK(next(ahead) == Address{2});
    CHECK(ahead.nearest() == 1);
    CHECK(next(ahead) == Address{4});
    CHECK(ahead.nearest() == 2);
    CHECK(next(ahead) == Address{3});
    CHECK_FALSE(ahead.is_empty());
    CHECK(next(ahead) == Address{1});
    CHECK(ahead.is_empty());
    CHECK(ahead.nearest() > emu::tuning::deepest_ahead);
    CHECK_FALSE(ahead.take());
}

TEST_CASE("what is furthest is forgotten where there is too much") {
    CodeAhead ahead;
    ahead.add({Address{1}, lean, false, 5});
    ahead.add({Address{2}, lean, false, 5});
    for (std::size_t n = 2; n < emu::tuning::most_ahead; ++n)
        ahead.add({Address{3}, lean, false, 1});
    ahead.add({Address{4}, lean, false, 3});
    for (std::size_t n = 2; n < emu::tuning::most_ahead; ++n) REQUIRE(next(ahead) == Address{3});
    CHECK(next(ahead) == Address{4});
    CHECK(ahead.is_empty());
}
