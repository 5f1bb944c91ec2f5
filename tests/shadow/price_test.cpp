#include <doctest/doctest.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampling/schedule/overhead_model.h"

using namespace shadowprof;
using namespace shadowprof::machine;
using namespace shadowprof::sampling;

TEST_CASE("computing beside a program is the dearer, the more often cores are shared") {
    // A program that is not known yet is taken for one that computes all the time.
    OverheadModel price{getpid(), false};
    const auto taken_after = [&](int looks, bool shared) {
        for (int look = 0; look < looks; ++look) price.core_was_shared(shared);
        return price.taken_beside();
    };
    const auto always = taken_after(100, true);
    CHECK(always.likely == doctest::Approx(0.3));
    CHECK(price.of_replica(Seconds{0.01}).likely >= Seconds{0.003});

    const auto [processors, cores] = proc::usable_cores();
    if (cores < processors) return;  // others may have all cores at this moment
    const auto at_times = taken_after(10, false);
    CHECK(at_times.likely < always.likely);
    CHECK(at_times.likely <= at_times.most);
    const auto never = taken_after(1000, false);
    CHECK(never.most < 0.001);
    CHECK(price.of_replica(Seconds{0.01}).most == Seconds{0.2e-3});
}
