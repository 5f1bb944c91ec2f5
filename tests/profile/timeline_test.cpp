// Timelines against what was put into them, and phases that are planted.
#include "profile/timeline/timeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/random.h"
#include "profile/timeline/timeline_words.h"

using namespace shadowprof;
using namespace shadowprof::profile;

namespace {

class EachIsAFunction : public FunctionMap {
  public:
    Location function_of(Location location) override { return location; }
};

ClockLook look_at(std::uint64_t place, double at, std::uint64_t nanoseconds = 5'000'000,
                  ThreadState state = ThreadState::user) {
    ClockLook look;
    look.thread = "main";
    look.state = state;
    look.at = at;
    look.nanoseconds = nanoseconds;
    look.stack = {Location{{}, place, {}}};
    return look;
}

TimelineHotlist list_of(TimelineProfiler& profiler) {
    Hotlists lists;
    profiler.yield(lists, Seen::samples);
    return *lists.find<TimelineHotlist>();
}

// Places become their own indices.
TimelineSection section_of(const TimelineHotlist& list) {
    TimelineSection section;
    section.column_width = list.column_width;
    section.totals = list.totals;
    for (const auto& e : list.entries) {
        std::optional<model::LocationIndex> function;
        if (e.function) function = static_cast<model::LocationIndex>(e.function->offset);
        section.entries.push_back({e.column, e.thread, e.state, e.call, function, e.statistics});
    }
    return section;
}

}  // namespace

TEST_CASE("each look is in the column of the time that it stands for") {
    EachIsAFunction functions;
    TimelineProfiler profiler{functions};
    profiler.look(look_at(1, 0.05));
    profiler.look(look_at(1, 0.06));
    profiler.look(look_at(2, 0.1));
    profiler.look(look_at(2, 0.8, 100'000'000, ThreadState::sleep));
    const auto list = list_of(profiler);
    CHECK(list.column_width == 100);
    CHECK(list.totals.total == 115'000'000);
    REQUIRE(list.entries.size() == 3);
    CHECK(list.entries[0].column == 7);
    CHECK(list.entries[0].state == ThreadState::sleep);
    CHECK(list.entries[1].column == 0);
    CHECK(list.entries[1].statistics.count == 10'000'000);
    CHECK(list.entries[1].statistics.samples == 2);
    CHECK(list.entries[2].column == 0);
}

TEST_CASE("a thread has one processor at most, however long the time is that a look stands for") {
    EachIsAFunction functions;
    for (const std::uint64_t milliseconds : {35, 100, 430}) {
        TimelineProfiler profiler{functions};
        const auto each = static_cast<double>(milliseconds) * 1e-3;
        for (int n = 1; n * each <= 9; ++n)
            profiler.look(look_at(1, n * each, milliseconds * 1'000'000));
        const auto list = list_of(profiler);
        std::map<std::uint64_t, std::uint64_t> in_column;
        std::uint64_t sum = 0;
        for (const auto& e : list.entries) {
            in_column[e.column] += e.statistics.count;
            sum += e.statistics.count;
        }
        CHECK(sum == list.totals.total);
        REQUIRE(in_column.size() > 80);
        in_column.erase(std::prev(in_column.end()));
        for (const auto& [column, time] : in_column)
            CHECK(static_cast<double>(time) == doctest::Approx(1e8).epsilon(1e-6));
    }
    // What is said to be from before the beginning is kept.
    TimelineProfiler early{functions};
    early.look(look_at(1, 0.05, 300'000'000));
    CHECK(list_of(early).entries.front().statistics.count == 300'000'000);
}

TEST_CASE("what takes little time in each column is told in one") {
    EachIsAFunction functions;
    TimelineProfiler profiler{functions};
    // In each of 100 columns 40 functions; one that matters is in a single column.
    for (std::uint64_t column = 0; column < 100; ++column)
        for (std::uint64_t n = 1; n <= 40; ++n)
            profiler.look(look_at(n, 0.1 * static_cast<double>(column) + 0.05, n * 100'000));
    profiler.look(look_at(50, 3.06, 50'000'000));
    const auto list = list_of(profiler);
    CHECK(list.totals.unknown == 0);
    std::uint64_t sum = 0;
    std::map<std::uint64_t, std::size_t> columns_of;
    for (const auto& e : list.entries) {
        sum += e.statistics.count;
        ++columns_of[e.function ? e.function->offset : 0];
    }
    CHECK(sum == list.totals.total);
    CHECK(list.entries.size() <= 1000);
    CHECK(columns_of.at(50) == 1);
    for (const auto& [function, columns] : columns_of)
        if (function != 50) CHECK(columns == 100);
    CHECK(columns_of.contains(40));
    CHECK(!columns_of.contains(1));
    for (const auto& phase : phases_of(section_of(list), std::identity{}))
        CHECK(!phase.parts.back().function);
}

TEST_CASE("a long run has wider columns, and nothing is lost") {
    EachIsAFunction functions;
    TimelineProfiler profiler{functions};
    for (int n = 0; n < 6000; ++n) profiler.look(look_at(n < 3000 ? 1 : 2, 0.01 * (n + 1)));
    const auto list = list_of(profiler);
    CHECK(list.column_width == 800);
    CHECK(list.totals.total == 6000 * 5'000'000UL);
    std::uint64_t sum = 0;
    for (const auto& e : list.entries) sum += e.statistics.count;
    CHECK(sum == list.totals.total);
    CHECK(list.entries.size() <= 77);
}

TEST_CASE("phases that differ are told apart, and noise is not") {
    EachIsAFunction functions;
    Random random{3};
    TimelineProfiler two{functions}, one{functions};
    for (int n = 0; n < 2000; ++n) {
        const auto at = 0.005 * (n + 1);
        // The first 3 s: nine tenths in 1; then two thirds in 2.
        const auto place =
            at <= 3 ? (random.chance(0.9) ? 1U : 2U) : (random.chance(0.67) ? 2U : 3U);
        two.look(look_at(place, at));
        one.look(look_at(random.chance(0.5) ? 1 : random.chance(0.5) ? 2 : 3, at));
    }
    const auto phases = phases_of(section_of(list_of(two)), std::identity{});
    REQUIRE(phases.size() == 2);
    CHECK(phases[0].first == 0);
    CHECK(phases[0].end == doctest::Approx(30).epsilon(0.04));
    CHECK(phases[1].end == 100);
    CHECK(phases[0].parts.front().function == 1U);
    CHECK(phases[1].parts.front().function == 2U);
    CHECK(phases_of(section_of(list_of(one)), std::identity{}).size() == 1);
}

TEST_CASE("code made at run time is one function of a phase, where it has no names") {
    model::Profile profile;
    profile.modules.resize(2);
    profile.modules[0].path = "/bin/program";
    profile.modules[1].path = "[runtime code]";
    for (std::uint64_t n = 0; n < 5; ++n) {
        model::Location location;
        location.module = n == 0 ? 0 : 1;
        location.offset = n;
        if (n == 4) location.function = "named";
        profile.locations.push_back(location);
    }
    EachIsAFunction functions;
    TimelineProfiler profiler{functions};
    for (unsigned n = 0; n < 2000; ++n)
        profiler.look(look_at(n < 1000 ? 0 : n % 8 == 0 ? 4 : 1 + n % 3, 0.005 * (n + 1)));
    const auto chapter =
        timeline_chapter(section_of(list_of(profiler)),
                         {.profile = profile, .all_instructions = {}, .most_rows = 9});
    REQUIRE(chapter.tables.size() == 1);
    const auto& rows = chapter.tables.front().rows;
    REQUIRE(rows.size() == 2);
    const auto texts = [&](std::size_t row) {
        std::vector<std::string> all;
        for (const auto& cell : rows[row].cells)
            if (const auto* const text = std::get_if<std::string>(&cell)) all.push_back(*text);
        return all;
    };
    CHECK(std::ranges::count(texts(0), "(code made at run time)") == 0);
    CHECK(std::ranges::count(texts(1), "(code made at run time)") == 1);
}

namespace {

// The cells of the phases' column `processors`, with where each ends.
std::vector<std::string> processors_of(const TimelineSection& timeline, model::Profile profile) {
    profile.modules.resize(1);
    profile.locations.resize(3);
    for (std::uint64_t n = 0; n < 3; ++n)
        profile.locations[n].function_offset = profile.locations[n].offset = n;
    const auto chapter =
        timeline_chapter(timeline, {.profile = profile, .all_instructions = {}, .most_rows = 20});
    REQUIRE(chapter.tables.size() == 1);
    std::vector<std::string> cells;
    for (const auto& row : chapter.tables.front().rows)
        cells.push_back(std::get<std::string>(row.cells[1]) + ": " +
                        std::get<std::string>(row.cells[2]));
    return cells;
}

void add_looks(TimelineProfiler& profiler, double from, double to, ThreadState state,
               std::uint64_t place) {
    const auto first = static_cast<int>(from * 100), end = static_cast<int>(to * 100);
    for (int n = first; n < end; ++n)
        profiler.look(look_at(place, 0.01 * (n + 1), 10'000'000, state));
}

}  // namespace

TEST_CASE("phases that nobody looked at are not idle, and those that end early are not half idle") {
    EachIsAFunction functions;
    TimelineProfiler profiler{functions};
    add_looks(profiler, 0, 3, ThreadState::user, 1);
    add_looks(profiler, 5, 7, ThreadState::sleep, 2);
    add_looks(profiler, 7, 9.03, ThreadState::user, 2);
    model::Profile p;
    p.run.duration = 9.03;
    CHECK(processors_of(section_of(list_of(profiler)), p) ==
          std::vector<std::string>{"3.00 s: 1.00", "5.00 s: not looked at", "7.00 s: 0.00",
                                   "9.03 s: 1.00"});
}

TEST_CASE("what processes computed that nobody looked at is not idle") {
    EachIsAFunction functions;
    TimelineProfiler profiler{functions};
    add_looks(profiler, 0, 3, ThreadState::user, 1);
    add_looks(profiler, 3, 8, ThreadState::child, 2);
    add_looks(profiler, 6, 8, ThreadState::user, 2);
    model::Profile p;
    p.run.duration = 8;
    const auto add = [&](double start, double end, double cpu) {
        auto& process = p.processes.emplace_back();
        process.start = start;
        process.end = end;
        process.cpu = cpu;
    };
    add(0, 8, 5);  // evenly, as far as this says
    const auto timeline = section_of(list_of(profiler));
    add(3, 6, 5.5);
    CHECK(processors_of(timeline, p) ==
          std::vector<std::string>{"3.00 s: 1.00", "6.00 s: not looked at", "8.00 s: 1.00"});
    p.processes.clear();
    add(0, 3, 3);
    CHECK(processors_of(timeline, p)[1] == "6.00 s: 0.00");
    // All of it was seen, in other phases.
    p.processes.clear();
    add(0, 8, 5);
    p.processes.front().part = 0;
    p.parts.emplace_back().sections.put(timeline.clone());
    CHECK(processors_of(timeline, p)[1] == "6.00 s: 0.00");
    p.processes.clear();
    add(6, 8, 5);
    CHECK(processors_of(timeline, p)[2] == "8.00 s: ≥ 1.00");
}

TEST_CASE("there are no more processors than the machine has, nor the sum of several runs") {
    EachIsAFunction functions;
    TimelineProfiler profiler{functions};
    for (int times = 0; times < 3; ++times) {
        add_looks(profiler, 0, 3, ThreadState::user, 1);
        add_looks(profiler, 3, 6, ThreadState::user, 2);
    }
    model::Profile p;
    p.run.duration = 18;
    p.run.seeds = {1, 2, 3};
    CHECK(processors_of(section_of(list_of(profiler)), p) ==
          std::vector<std::string>{"3.00 s: 1.00", "6.00 s: 1.00"});
    p.run.seeds.clear();
    p.host.cores = 2;
    CHECK(processors_of(section_of(list_of(profiler)), p)[0] == "3.00 s: 2.00");
}

TEST_CASE("a sum has the wider columns of what is added up") {
    EachIsAFunction functions;
    TimelineProfiler brief{functions}, long_one{functions};
    for (int n = 0; n < 100; ++n) brief.look(look_at(1, 0.01 * (n + 1)));
    for (int n = 0; n < 3000; ++n) long_one.look(look_at(1, 0.01 * (n + 1)));
    const auto narrow = section_of(list_of(brief)), wide = section_of(list_of(long_one));
    REQUIRE(narrow.column_width == 100);
    REQUIRE(wide.column_width == 400);
    for (const bool wide_first : {true, false}) {
        const auto sum = narrow.make_sum();
        sum->add(wide_first ? wide : narrow);
        sum->add(wide_first ? narrow : wide);
        const auto taken = sum->take();
        const auto& all = dynamic_cast<const TimelineSection&>(*taken);
        CHECK(all.column_width == 400);
        CHECK(all.totals.total == 3100 * 5'000'000UL);
        CHECK(all.entries.size() == wide.entries.size());
        for (const auto& e : all.entries)
            CHECK(e.statistics.count == (e.column <= 1   ? 80
                                         : e.column == 2 ? 60
                                                         : 40) *
                                            5'000'000UL);
    }
}
