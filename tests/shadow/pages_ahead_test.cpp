#include "sampling/modes/pages_ahead.h"

#include <doctest/doctest.h>

#include "shared_pages.h"

using namespace shadowprof;
using namespace shadowprof::sampling;
using namespace shadowprof::shadow_test;

namespace {

// One sample, in which the replica writes to these pages; it is to be told whether that takes
// hardly any faults, or one for each page.
bool sample(PagesAhead& ahead, Memory& memory, std::size_t from, std::size_t to, bool copied) {
    Child child{[&] {
        bool fine = false;
        const auto faults = memory.write(from, to, fine);
        const auto count = static_cast<long>(to - from);
        return fine && (copied ? faults < count / 8 : faults >= count);
    }};
    const auto maps = proc::Maps::of(child.pid());
    const auto beginning = ahead.copy_for(child.pid(), *maps);
    child.live();
    ahead.learn(beginning, child.pid(), *maps);
    return child.was_fine();
}

}  // namespace

TEST_CASE("what a replica wrote to is copied for the next ones before they begin") {
    Memory memory;
    PagesAhead ahead{true};
    CHECK(sample(ahead, memory, 0, 600, false));
    for (int n = 0; n < 5; ++n) CHECK(sample(ahead, memory, 0, 600, true));
    for (std::size_t n = 0; n < pages; ++n) CHECK(memory.bytes()[n * page] == static_cast<char>(n));
}

TEST_CASE("what was copied in vain is not copied again") {
    Memory memory;
    PagesAhead ahead{true};
    CHECK(sample(ahead, memory, 0, 400, false));
    CHECK(sample(ahead, memory, 400, 1000, false));
    CHECK(sample(ahead, memory, 0, 400, false));
}

TEST_CASE("a program that goes on to write elsewhere is learnt anew") {
    Memory memory;
    PagesAhead ahead{true};
    CHECK(sample(ahead, memory, 0, 400, false));
    for (int n = 1; n < 8; ++n) sample(ahead, memory, 400, 1000, false);
    CHECK(sample(ahead, memory, 400, 1000, false));
    CHECK(sample(ahead, memory, 400, 1000, true));
}

TEST_CASE("nothing is copied where copies are cheap, nor of what is mapped no more") {
    Memory memory;
    PagesAhead cheap{false};
    CHECK(sample(cheap, memory, 0, 400, false));
    CHECK(sample(cheap, memory, 0, 400, false));

    PagesAhead ahead{true};
    CHECK(sample(ahead, memory, 0, 400, false));
    munmap(memory.bytes(), 200 * page);
    CHECK(sample(ahead, memory, 200, 400, true));
}
