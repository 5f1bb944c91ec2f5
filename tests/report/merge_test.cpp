#include "model/merge.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "model/profile_file.h"
#include "profile/registry.h"
#include "report/views/processes.h"
#include "sample_profile.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

Profile merged(const std::vector<Profile>& all) {
    Merger merger;
    for (const auto& p : all) merger.add({"file", p});
    return merger.take();
}

std::string why_not(const Profile& a, const Profile& b, ExitStatus* status = nullptr) {
    Merger merger;
    merger.add({"one.json", a});
    try {
        merger.add({"two.json", b});
    } catch (const UserError& e) {
        if (status) *status = e.status();
        return e.what();
    }
    return "";
}

// Of loads on one of three machines.
LatencySection some_latencies(std::mt19937& random) {
    LatencySection list;
    list.totals = Totals{};
    const auto machine = random() % 3;
    list.scale.clock_is_usable = machine != 2;
    list.scale.why_not = machine == 2 ? "the clock stops" : "";
    list.scale.nanoseconds_per_tick = machine == 0 ? 1 / 2.7 : 10.3;
    list.scale.overhead_ticks = 7.7;
    list.scale.typical_ns = {1, 4, machine == 0 ? 20.5 : 19.25, 95};
    list.scale.caches.levels[2].size = (32u + machine) << 20;
    std::uint64_t total = 0;
    for (LocationIndex at : {5u, 3u, 6u}) {
        LatencyEntry e;
        e.location = at;
        e.operand = "[rdi+0x8]";
        e.operand_index = 1;
        e.pattern = static_cast<AddressPattern>(random() % 5);
        if (e.pattern == AddressPattern::stride) e.step = 8 << random() % 2;
        if (e.pattern == AddressPattern::chase) e.origin = random() % 2 ? 5 : 6;
        e.timed = list.scale.clock_is_usable ? 1 + random() % 100 : 0;
        e.disturbed = e.timed / 7;
        e.modelled = 50;
        e.loads = 1000 + random() % 100;
        for (std::uint64_t i = 0; i < e.timed; ++i) ++e.histogram[random() % profile::latency_bins];
        e.by_time[random() % 2] = e.timed;
        e.by_model[random() % 4] = e.modelled;
        e.page_walks = random() % 50;
        e.picoseconds = static_cast<std::int64_t>(e.timed * (random() % 100'000)) - 500;
        e.square_nanoseconds = e.timed * 17;
        e.statistics.count = e.timed * (random() % 100);
        total += e.statistics.count;
        list.loads += e.loads;
        list.entries.push_back(e);
    }
    for (auto& e : list.entries) {
        const auto count = e.statistics.count;
        e.statistics = {};
        if (count != 0) e.statistics.add_sample(count, total);
    }
    list.totals.add_sample(total);
    return list;
}

// Another run of the sample profile's program: other counts, some entries missing, some values
// unread, some places renumbered, on another machine.
Profile another_run(std::mt19937& random, bool with_latencies = false) {
    auto p = sample_profile();
    p.run.seed = random();
    p.run.duration = 0.1 * static_cast<double>(random() % 100);
    p.run.started = "2026-01-0" + std::to_string(1 + random() % 9) + "T00:00:00Z";
    p.host.kernel = random() % 2 ? "6.1.0" : "6.2.0";
    p.targets[0].pid = 1 + random() % 3;
    p.cost.stop_time = 0.1 * static_cast<double>(random() % 10);
    if (random() % 2) p.cost.slowdown.reset();
    if (random() % 4 == 0) p.coverage.weighted_instructions.reset();
    p.find<EdgeSection>()->entries.clear();
    for (LocationIndex from = 0; from < p.locations.size(); ++from) {
        if (random() % 3 == 0) continue;
        EdgeEntry e{from, static_cast<LocationIndex>(random() % p.locations.size()), {}, {}};
        e.statistics.add_sample(random() % 10 + 1, 100);
        p.find<EdgeSection>()->entries.push_back(e);
    }
    p.find<EdgeSection>()->totals = {};
    p.find<EdgeSection>()->totals.add_sample(100);
    p.find<EdgeSection>()->totals.unknown = 100;
    for (const auto& e : p.find<EdgeSection>()->entries)
        p.find<EdgeSection>()->totals.unknown -= e.statistics.count;

    auto& value = p.find<ValueSection>()->entries[0];
    value.unread = random() % 1000;
    p.find<ValueSection>()->unread = value.unread + random() % 10;
    value.probability_inverse = 1 + random() % 5;
    value.top[0].value = random() % 3;
    auto& address = p.find<ValueSection>()->entries[2];
    switch (random() % 4) {
        case 0:
            address.stride = Stride{8, 0.9, 90, 100};
            break;
        case 1:
            address.stride = Stride{16, 0.9, 90, 100};
            break;
        case 2:
            address.stride.reset();
            break;
        default:
            break;
    }
    if (with_latencies) p.add<LatencySection>() = some_latencies(random);
    // The code made at run time lies elsewhere; another module comes before it.
    p.locations[7].offset += 0x1000 * (random() % 5);
    p.locations[7].function = "jitted";
    p.locations[7].function_offset = p.locations[7].offset - 0x10;
    p.modules.insert(p.modules.begin(), {"/lib/first.so", std::to_string(random() % 3)});
    for (auto& l : p.locations) ++l.module;
    Location first;
    first.module = 0;
    first.offset = random() % 4;
    if (random() % 2) first.text = "nop";
    p.locations.push_back(first);
    return p;
}

}  // namespace

TEST_CASE("a merge of one profile says what the profile says") {
    auto p = merged({sample_profile()});
    CHECK(p.run.runs() == 1);
    CHECK(p.run.seeds == std::vector{p.run.seed});
    CHECK(p.hosts == std::vector{p.host});
    const auto& warnings = p.run.warnings;  // the sample's paths have lost entries
    REQUIRE(warnings.size() == 2);
    CHECK(contains(warnings[1], "--limit"));
    auto expected = sample_profile();
    CHECK(p.find<EdgeSection>()->entries.size() == expected.find<EdgeSection>()->entries.size());
    CHECK(p.find<PathSection>()->totals == expected.find<PathSection>()->totals);
    CHECK(p.find<ValueSection>()->entries[0].top == expected.find<ValueSection>()->entries[0].top);
    CHECK(p.find<ValueSection>()->entries[0].executions ==
          expected.find<ValueSection>()->entries[0].executions);
    CHECK(p.find<ValueSection>()->entries[1].stride ==
          expected.find<ValueSection>()->entries[2].stride);
    CHECK(p.coverage == expected.coverage);
    CHECK(p.cost == expected.cost);
    CHECK(p.run.duration == expected.run.duration);
}

TEST_CASE("how runs were sampled is told of all of them") {
    auto first = sample_profile(), second = sample_profile();
    first.run.budget = second.run.budget = model::Budget{0.01, 0.05};
    first.run.stood_in = {{"burst", 1.5}};
    second.run.stood_in = {{"burst", 2.25}, {"step", 1}};
    const auto both = merged({first, second}).run;
    CHECK(both.budget == first.run.budget);
    CHECK(both.stood_in == std::map<std::string, double>{{"burst", 3.75}, {"step", 1}});
    CHECK_FALSE(both.is_whole);
    second.run.budget->stake = 0;
    CHECK_FALSE(merged({first, second}).run.budget);
}

TEST_CASE("twice the same run: twice the counts, the same shares, narrower intervals") {
    const auto once = sample_profile();
    const auto twice = merged({once, once});
    CHECK(twice.run.runs() == 2);
    CHECK(twice.coverage.instructions == 2 * once.coverage.instructions);
    CHECK(twice.coverage.weighted_instructions == 2 * *once.coverage.weighted_instructions);
    CHECK(twice.run.duration == 2 * once.run.duration);
    REQUIRE(twice.find<PathSection>()->entries.size() == once.find<PathSection>()->entries.size());
    for (std::size_t i = 0; i < once.find<PathSection>()->entries.size(); ++i) {
        const auto a = model::estimate_share(once.find<PathSection>()->entries[i].statistics,
                                             once.find<PathSection>()->totals);
        const auto b = model::estimate_share(twice.find<PathSection>()->entries[i].statistics,
                                             twice.find<PathSection>()->totals);
        CHECK(a.share == b.share);
        CHECK(b.high - b.low < a.high - a.low);
    }
    const auto& value = twice.find<ValueSection>()->entries[0];
    CHECK(value.executions.total == 200);
    CHECK(value.probability_inverse == 7);  // 4 - 1 may be missing twice
    CHECK(value.top[0].statistics.count == 180);
}

TEST_CASE("order and grouping of a merge do not show in it") {
    std::mt19937 random(7);
    std::vector<Profile> runs;
    bool with_latencies = false;
    SUBCASE("without latencies") {}
    SUBCASE("with latencies") {
        with_latencies = true;
    }
    for (int i = 0; i < 12; ++i)
        runs.push_back(profile::from_json(to_json(another_run(random, with_latencies))));
    const auto all = to_json(merged(runs));
    for (int i = 0; i < 20; ++i) {
        std::shuffle(runs.begin(), runs.end(), random);
        std::vector<Profile> left = runs;
        while (left.size() > 1) {
            const auto size = std::min<std::size_t>(left.size(), 2 + random() % 4);
            const std::vector<Profile> group(left.end() - static_cast<std::ptrdiff_t>(size),
                                             left.end());
            left.resize(left.size() - size);
            // Through the file, as between machines.
            left.insert(left.begin(), profile::from_json(to_json(merged(group))));
        }
        REQUIRE(to_json(left.front()) == all);
    }
}

TEST_CASE("latencies of two machines") {
    auto here = sample_profile(), there = sample_profile();
    std::mt19937 random(3);
    here.add<LatencySection>() = some_latencies(random);
    here.find<LatencySection>()->scale.clock_is_usable = true;
    there.add<LatencySection>() = *here.find<LatencySection>();
    CHECK_FALSE(contains(merged({here, there}).run.warnings.back(), "clocks or caches differ"));

    auto& scale = there.find<LatencySection>()->scale;
    scale.nanoseconds_per_tick *= 4;
    scale.caches.levels[2].size = 1 << 20;
    auto& load = there.find<LatencySection>()->entries[0];
    here.find<LatencySection>()->entries[0].pattern = load.pattern = AddressPattern::stride;
    here.find<LatencySection>()->entries[0].step = 8;
    load.step = 16;
    for (const auto& both : {merged({here, there}), merged({there, here})}) {
        CHECK(contains(both.run.warnings.back(), "clocks or caches differ"));
        REQUIRE(both.find<LatencySection>());
        CHECK(both.find<LatencySection>()->scale.nanoseconds_per_tick ==
              scale.nanoseconds_per_tick);
        CHECK(both.find<LatencySection>()->scale.caches ==
              here.find<LatencySection>()->scale.caches);
        CHECK(both.find<LatencySection>()->loads == 2 * here.find<LatencySection>()->loads);
        CHECK(both.find<LatencySection>()->totals.total ==
              2 * here.find<LatencySection>()->totals.total);
        const auto& e =
            *std::find_if(both.find<LatencySection>()->entries.begin(),
                          both.find<LatencySection>()->entries.end(), [&](const auto& each) {
                              return both.at(each.location).offset == here.at(load.location).offset;
                          });
        CHECK(e.timed == 2 * load.timed);
        CHECK(e.mean_ns() == doctest::Approx(load.mean_ns()));
        CHECK(e.pattern == AddressPattern::stride);
        CHECK(e.step == 0);
    }
}

TEST_CASE("code made at run time is the same where name and place in it are") {
    auto a = sample_profile();
    a.locations[7].function = "jitted";
    a.locations[7].function_offset = a.locations[7].offset - 0x10;
    auto b = a;
    b.locations[7].offset += 0x20000;
    b.locations[7].content = 9;
    *b.locations[7].function_offset += 0x20000;
    const auto both = merged({b, a});
    CHECK(both.locations.size() == a.locations.size());
    const auto elsewhere = [&] {
        b.locations[7].text = "subsd xmm0, xmm1";
        return merged({b, a});
    }();
    CHECK(elsewhere.locations.size() == a.locations.size() + 1);
}

TEST_CASE("what does not belong together is not merged") {
    const auto a = sample_profile();
    ExitStatus status{};
    auto b = a;
    b.run.mode = "full";
    CHECK(contains(why_not(a, b, &status), "mode step, the other in mode full"));
    CHECK(status == ExitStatus::incomparable);
    b = a;
    b.run.profiles.pop_back();
    CHECK(contains(why_not(a, b), "-p call,edge,method,path,value, the other with -p"));
    b = a;
    b.remove<EdgeSection>();
    CHECK(contains(why_not(a, b), "one has callers,calls,contexts,edges"));
    b = a;
    b.targets[0].command[0] = "/bin/ls";
    CHECK(contains(why_not(a, b), "app and ls are different programs"));
    b = a;
    b.modules[0].build_id = "77";
    CHECK(contains(why_not(a, b), "different builds of app"));
    b = a;
    b.targets[0].command[0] = "/elsewhere/app";
    CHECK(why_not(a, b).empty());
    b = a;
    b.coverage.blocks = ~std::uint64_t{0};
    CHECK(contains(why_not(a, b, &status), "beyond 64 bits"));
    CHECK(status == ExitStatus::error);
    b = a;
    b.find<EdgeSection>()->entries[0].statistics.squares = ~Wide{0};
    CHECK(contains(why_not(a, b), "beyond 64 bits"));
}

namespace {

// One process, with one part: all of the profile.
Profile of_process(std::int64_t pid, const std::string& program, std::uint64_t samples) {
    auto p = sample_profile();
    p.processes.clear();
    p.parts.clear();
    p.other_processes = {2, 0.25};
    Process who;
    who.pid = pid;
    who.program = who.name = program;
    who.cpu = 1.5;
    who.samples = samples;
    who.threads = {{"main", 1.5}};
    who.part = 0;
    p.parts.push_back({p.coverage, p.sections});
    p.processes.push_back(who);
    return p;
}

Profile of_one_run(const std::vector<Profile>& all) {
    Merger merger{Merger::From::one_run};
    for (const auto& p : all) merger.add({"process", p});
    return merger.take();
}

}  // namespace

TEST_CASE("processes of one run stay apart, and those of many are one for each program") {
    const auto a = of_process(10, "/bin/sort", 3), b = of_process(11, "/bin/gzip", 4),
               c = of_process(12, "/bin/sort", 5);
    const auto run = of_one_run({a, b, c});
    REQUIRE(run.processes.size() == 3);
    CHECK(run.parts.size() == 3);
    CHECK(run.processes[1].part == 1);
    CHECK(run.parts[1].sections == merged({a}).sections);
    CHECK(run.other_processes.count == 6);

    const auto runs = merged({run, c});
    REQUIRE(runs.processes.size() == 2);
    const auto& sorts = runs.processes[1];
    CHECK(sorts.program == "/bin/sort");
    CHECK(sorts.count == 3);
    CHECK(sorts.samples == 13);
    CHECK(sorts.cpu == 4.5);
    CHECK(sorts.threads.at("main") == 4.5);
    CHECK(runs.parts[*sorts.part].sections == merged({a, a, a}).sections);
    CHECK(runs == merged({c, run}));
    CHECK(from_json(to_json(runs), profile::section_types()) == runs);
}

TEST_CASE("of many processes of a program, some are told alone and the rest together") {
    std::vector<Profile> all;
    for (int n = 0; n < 20; ++n) all.push_back(of_process(n + 1, "/bin/cc1", 1));
    const auto run = of_one_run(all);
    CHECK(run.processes.size() == 20);
    REQUIRE(run.parts.size() == 9);
    CHECK(run.processes[7].part == 7);
    CHECK(run.processes[8].part == 8);
    CHECK(run.processes[19].part == 8);
    CHECK(run.parts[8].coverage.samples == 12 * all[0].coverage.samples);
}

TEST_CASE("a profile is cut to one process, or to a program") {
    const auto run = of_one_run({of_process(10, "/bin/sort", 3), of_process(11, "/bin/gzip", 4),
                                 of_process(12, "/bin/sort", 5)});
    const auto one = cut_to_process(run, "11");
    CHECK(one.processes.size() == 1);
    CHECK(one.parts.empty());
    CHECK(one.sections == run.parts[1].sections);
    CHECK(cut_to_process(run, "sort").coverage.samples == 2 * sample_profile().coverage.samples);
    CHECK_THROWS_WITH_AS(cut_to_process(run, "13"),
                         "the profile has no process 13; it has gzip, sort", UserError);
    CHECK_THROWS_AS(cut_to_process(sample_profile(), "sort"), UserError);
}

}  // namespace shadowprof::report
