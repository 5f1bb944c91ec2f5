#include "machine/processor_time.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "base/clock.h"

using namespace shadowprof;
using namespace shadowprof::machine;

namespace {

double share_of(const std::function<void()>& does) {
    const auto child = fork();
    if (child == 0)
        for (;;) does();
    ComputingShare share{child};
    for (int look = 0; look < 40; ++look) {
        std::this_thread::sleep_for(Seconds{0.01});
        share.look(Seconds{0});
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return share.of_late();
}

}  // namespace

TEST_CASE("one that computes and one that waits are told apart") {
    const auto computes = share_of([] {});
    CHECK(computes > 0.05);  // beside whatever else there is to do
    CHECK(share_of([] { pause(); }) < 0.02);
    const auto half = share_of([] {
        const auto until = computed(CLOCK_PROCESS_CPUTIME_ID) + Seconds{0.005};
        while (computed(CLOCK_PROCESS_CPUTIME_ID) < until) {
        }
        std::this_thread::sleep_for(Seconds{0.005});
    });
    CHECK(half < 0.8);
    CHECK(half > 0.05);
}

TEST_CASE("the time in which it could not compute does not count") {
    const auto child = fork();
    if (child == 0)
        for (;;) {
        }
    ComputingShare share{child}, unaware{child};
    for (int look = 0; look < 40; ++look) {
        kill(child, SIGSTOP);
        const auto began = Clock::now();
        std::this_thread::sleep_for(Seconds{0.009});
        const Seconds held = Clock::now() - began;
        kill(child, SIGCONT);
        std::this_thread::sleep_for(Seconds{0.001});
        share.look(held);
        unaware.look(Seconds{0});
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    CHECK(share.of_late() > 1.5 * unaware.of_late());
}
