#include "profile/request/request.h"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>

#include "test_program.h"

namespace shadowprof::profile {

namespace {

using trace::Request, trace::RequestSight;
using Kind = RequestSight::Kind;

constexpr std::uint64_t period = 5'000'000;

class Hundreds : public FunctionMap {
  public:
    Location function_of(Location location) override {
        location.offset -= location.offset % 0x100;
        return location;
    }
};

RequestSight sight_of(const std::string& route, const std::string& span = "01") {
    return {Kind::known, std::make_shared<Request>(Request{"0a", span, {{"http.route", route}}})};
}

struct Profiled {
    TestProgram program;
    Hundreds functions;
    RequestProfiler profiler{program.table, functions};

    void look(const RequestSight& sight, ThreadState state = ThreadState::user) {
        profiler.look_for_request({"worker", state, "", period, 0, {at(0x1010), at(0x2020)}},
                                  sight);
    }
    // One of `blocks` blocks of ten instructions.
    void sample(const std::vector<RequestSight>& sights, std::uint64_t blocks,
                std::uint64_t weight = 1) {
        const auto id = static_cast<trace::SampleId>(samples_++);
        for (const auto& sight : sights) profiler.see_request(id, sight);
        Counts counts;
        counts.exits.push_back({block_, Address{0x9000}, at(0x9000), blocks});
        profiler.count(id, counts);
        profiler.end_sample(id, weight);
    }
    RequestHotlist found() {
        Hotlists lists;
        profiler.yield(lists, Seen::samples);
        return lists.find<RequestHotlist>() ? *lists.find<RequestHotlist>() : RequestHotlist{};
    }

  private:
    trace::BlockId block_ = program.block(0x1000, 10, trace::BlockExit::jump);
    std::uint32_t samples_ = 0;
};

std::uint64_t sum(const RequestHotlist& list, const std::string& route,
                  Statistics RequestHotlist::Entry::*part) {
    std::uint64_t all = 0;
    for (const auto& e : list.entries)
        if (route.empty()
                ? e.attributes.empty()
                : e.attributes.contains("http.route") && e.attributes.at("http.route") == route)
            all += (e.*part).count;
    return all;
}

}  // namespace

TEST_CASE("time by request: of none, of one that is not known, and of what was not published") {
    Profiled of;
    of.look({});
    CHECK(of.found().entries.empty());
    of.look(sight_of("/a"));
    of.look(sight_of("/a"));
    of.look(sight_of("/b"), ThreadState::socket);
    of.look({Kind::none, {}});
    of.look({Kind::unknown, {}});
    const auto list = of.found();
    CHECK(list.totals.total == 4 * period);
    CHECK(list.totals.unknown == period);
    CHECK(sum(list, "/a", &RequestHotlist::Entry::statistics) == 2 * period);
    CHECK(sum(list, "/b", &RequestHotlist::Entry::statistics) == 0);
    CHECK(sum(list, "/b", &RequestHotlist::Entry::waiting) == period);
    CHECK(sum(list, "", &RequestHotlist::Entry::statistics) == period);
    for (const auto& e : list.entries)
        if (!e.is_of_none()) CHECK(e.frames == std::vector{at(0x1000), at(0x2020)});
}

TEST_CASE("instructions by request: of one of the threads that take part") {
    Profiled of;
    of.sample({sight_of("/a"), sight_of("/a")}, 3, 2);
    of.sample({{Kind::unknown, {}}}, 7);
    of.sample({}, 9);  // nothing was published then
    const auto list = of.found();
    CHECK(list.instructions.total == 3 * 10 * 2 + 70);
    CHECK(list.instructions.unknown == 70);
    CHECK(sum(list, "/a", &RequestHotlist::Entry::instructions) == 60);

    Profiled changing;
    for (int n = 0; n < 1000; ++n) changing.sample({sight_of("/a"), sight_of("/b")}, 5);
    const auto both = changing.found();
    CHECK(both.instructions.total == 50'000);
    const auto of_a = sum(both, "/a", &RequestHotlist::Entry::instructions);
    CHECK(of_a + sum(both, "/b", &RequestHotlist::Entry::instructions) == 50'000);
    CHECK(of_a > 22'000);
    CHECK(of_a < 28'000);
}

TEST_CASE("of too many spans and values the longest are told, and no time is lost") {
    Profiled of;
    for (int n = 0; n < 3000; ++n)
        of.look(sight_of("/" + std::to_string(n % 200), "span" + std::to_string(n)));
    for (int n = 0; n < 50; ++n) of.look(sight_of("/often", "often"));
    const auto list = of.found();
    std::set<std::string> spans, values;
    std::uint64_t all = 0;
    for (const auto& e : list.entries) {
        spans.insert(e.span);
        values.insert(e.attributes.at("http.route"));
        all += e.statistics.count;
    }
    CHECK(all == 3050 * period);
    CHECK(list.totals.unknown == 0);
    CHECK(spans.contains("often"));
    CHECK(values.contains("/often"));
    CHECK(spans.size() == 1001);  // and none
    CHECK(values.size() == 101);  // and others
}

}  // namespace shadowprof::profile
