#include "sampling/schedule/overhead_model.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/clock.h"

using namespace shadowprof;
using namespace shadowprof::machine;
using namespace shadowprof::sampling;

TEST_CASE("computing beside a program is counted on virtual processors, and only there") {
    // A program that is not known yet is taken for one that computes all the time.
    HostCharges host{getpid()};
    OverheadModel price{getpid(), host, false};
    const auto [processors, cores] = proc::usable_cores();
    if (cores < processors) return;  // others may have all cores at this moment
    CHECK(price.taken_beside() == (proc::are_virtual_processors() ? 0.025 : 0));
    CHECK(price.of_replica(Seconds{0.001}) == Seconds{0.2e-3});
}
