#include "machine/wakeful_processors.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>

#include "base/clock.h"

using namespace shadowprof::machine;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

// Microseconds that processors may need to be awake, by all that have asked for it.
std::optional<std::int32_t> allowed() {
    const int file = open("/dev/cpu_dma_latency", O_RDONLY | O_CLOEXEC);
    std::int32_t value = 0;
    const bool is_read = file >= 0 && read(file, &value, sizeof value) == sizeof value;
    if (file >= 0) close(file);
    return is_read ? std::optional{value} : std::nullopt;
}

// Others that profile ask for that, too, for a moment.
bool may_sleep_again() {
    const auto given_up = Clock::now() + 10s;
    while (allowed() == 0 && Clock::now() < given_up) std::this_thread::sleep_for(1ms);
    return allowed() != 0;
}

}  // namespace

TEST_CASE("processors are asked to stay awake from the beginning to the end") {
    WakefulProcessors wakeful;
    if (!wakeful.are_possible() || !allowed()) {
        MESSAGE("they cannot be asked here");
        return;
    }
    REQUIRE(may_sleep_again());
    wakeful.begin();
    wakeful.begin();
    CHECK(allowed() == 0);
    wakeful.end();
    CHECK(may_sleep_again());
    {
        WakefulProcessors until_its_end;
        until_its_end.begin();
        CHECK(allowed() == 0);
    }
    CHECK(may_sleep_again());
}
