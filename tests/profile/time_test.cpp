#include "profile/time/time.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "test_program.h"

namespace shadowprof::profile {

namespace {

constexpr std::uint64_t period = 5'000'000;

// Functions begin at multiples of 0x100.
class Hundreds : public FunctionMap {
  public:
    Location function_of(Location location) override {
        location.offset -= location.offset % 0x100;
        return location;
    }
};

ClockLook look(ThreadState state, std::vector<std::uint64_t> stack, std::uint64_t time = period) {
    ClockLook look{"worker", state, state == ThreadState::kernel ? "read" : "", time, 0, {}};
    for (const auto offset : stack) look.stack.push_back(at(offset));
    return look;
}

TimeHotlist found_by(const std::vector<ClockLook>& looks) {
    Hundreds functions;
    TimeProfiler profiler{functions};
    for (const auto& each : looks) profiler.look(each);
    Hotlists lists;
    profiler.yield(lists, Seen::samples);
    return *lists.find<TimeHotlist>();
}

}  // namespace

TEST_CASE("a context is the same wherever its innermost function was met") {
    const auto list = found_by(
        {look(ThreadState::user, {0x1010, 0x2020}), look(ThreadState::user, {0x1080, 0x2020}),
         look(ThreadState::user, {0x1080, 0x2030}), look(ThreadState::kernel, {0x1010, 0x2020})});
    REQUIRE(list.entries.size() == 3);
    CHECK(list.entries[0].frames == std::vector{at(0x1000), at(0x2020)});
    CHECK(list.entries[0].statistics.count == 2 * period);
    CHECK(list.entries[0].statistics.samples == 2);
    CHECK(list.totals.total == 4 * period);
    CHECK(list.totals.samples == 4);
    CHECK(list.totals.unknown == 0);
    CHECK(list.waiting.total == 0);
}

TEST_CASE("each caller is in a context once, whatever the depth") {
    const auto list = found_by({look(ThreadState::user, {0x1010, 0x2020, 0x3030}),
                                look(ThreadState::user, {0x1010, 0x2020, 0x2020, 0x3030}),
                                look(ThreadState::user, {0x1010, 0x2020, 0x2020, 0x2020, 0x3030}),
                                look(ThreadState::user, {0x2020, 0x2020, 0x3030})});
    REQUIRE(list.entries.size() == 2);
    CHECK(list.entries[0].frames == std::vector{at(0x1000), at(0x2020), at(0x3030)});
    CHECK(list.entries[0].statistics.count == 3 * period);
    // Where it is, and where it was called from.
    CHECK(list.entries[1].frames == std::vector{at(0x2000), at(0x2020), at(0x3030)});
}

TEST_CASE("waiting is not a part of the time on processors") {
    const auto list = found_by(
        {look(ThreadState::user, {0x1010}), look(ThreadState::lock, {0x2010, 0x2020}, 700),
         look(ThreadState::lock, {0x2010, 0x2020}, 800), look(ThreadState::sleep, {}, 100)});
    REQUIRE(list.entries.size() == 3);
    CHECK(list.totals.total == period);
    CHECK(list.waiting.total == 1600);
    CHECK(list.waiting.samples == 3);
    CHECK(list.entries[1].waiting.count == 1500);
    CHECK(list.entries[1].statistics.count == 0);
    CHECK(list.entries[2].frames.empty());
    CHECK(!list.entries[1].defect());
    auto mixed = list.entries[1];
    mixed.statistics.count = 1;
    CHECK(mixed.defect());
}

TEST_CASE("of too many contexts the rarest are told by their function, and no time is lost") {
    std::vector<ClockLook> looks(3, look(ThreadState::user, {0x1010, 0x2020}));
    for (std::uint64_t n = 0; n < 8000; ++n)
        looks.push_back(look(ThreadState::user, {0x100 * (n % 5), 0x10000 + n}));
    const auto list = found_by(looks);
    CHECK(list.entries.size() <= 3000);
    CHECK(list.totals.unknown == 0);
    CHECK(std::ranges::count_if(list.entries, [](const auto& e) {
              return e.frames == std::vector{at(0x1000), at(0x2020)};
          }) == 1);
    std::map<std::uint64_t, std::uint64_t> time_of;
    for (const auto& e : list.entries) time_of[e.frames[0].offset] += e.statistics.count;
    REQUIRE(time_of.size() == 6);
    for (std::uint64_t n = 0; n < 5; ++n) CHECK(time_of.at(0x100 * n) == 1600 * period);
}

TEST_CASE("time of which nothing is known is unknown") {
    auto unseen = look(ThreadState::user, {});
    unseen.state.reset();
    const auto list = found_by({unseen, unseen, look(ThreadState::user, {0x1010})});
    CHECK(list.totals.total == 3 * period);
    CHECK(list.totals.unknown == 2 * period);
    CHECK(list.totals.samples == 3);
    CHECK(list.entries.size() == 1);
}

TEST_CASE("a stack that breaks off goes on as others do from there") {
    const std::vector<std::uint64_t> whole{0x1010, 0x2020, 0x3030, 0x4040};
    const auto list =
        found_by({look(ThreadState::user, whole), look(ThreadState::user, whole),
                  look(ThreadState::user, {0x1010, 0x2020, 0x5050, 0x4040}),
                  look(ThreadState::kernel, {0x1110, 0x2020}), look(ThreadState::user, {0x1010}),
                  look(ThreadState::user, {0x6060, 0x7070})});
    REQUIRE(list.entries.size() == 4);
    CHECK(list.entries[0].statistics.samples == 3);
    CHECK(list.entries[0].frames == std::vector{at(0x1000), at(0x2020), at(0x3030), at(0x4040)});
    for (const auto& e : list.entries) {
        if (e.state == ThreadState::kernel)
            CHECK(e.frames == std::vector{at(0x1100), at(0x2020), at(0x3030), at(0x4040)});
        // Nothing is known of what another place leads to.
        if (e.frames.front() == at(0x6000)) CHECK(e.frames == std::vector{at(0x6000), at(0x7070)});
    }
}

}  // namespace shadowprof::profile
