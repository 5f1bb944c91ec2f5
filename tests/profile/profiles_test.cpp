#include <doctest/doctest.h>

#include <atomic>

#include "base/error.h"
#include "profile/registry.h"
#include "profile/stack/stack.h"
#include "test_program.h"

namespace shadowprof::profile {

TEST_CASE("profile types by name, and stacks always") {
    TestProgram program;
    EvenlySpacedFunctions functions{0x1000};
    ProfileOptions options;
    options.names = {"value", "path"};
    const auto profilers = make_profilers(options, program.table, functions);
    REQUIRE(profilers.size() == 3);
    CHECK(profilers[0]->name() == "path");
    CHECK(profilers[1]->name() == "value");
    CHECK(profilers[2]->name() == "stack");
    CHECK(captures_of(profilers) == trace::CapturePlan{trace::Capture::destination_values});
    options.names = {"path", "edge", "call", "method"};
    CHECK(captures_of(make_profilers(options, program.table, functions)).empty());
}

TEST_CASE("transitions are counted once for all that follows from them") {
    TestProgram program;
    EvenlySpacedFunctions functions{0x1000};
    std::atomic<double> precision{0};
    ProfileOptions options;
    options.names = {"edge", "call", "method"};
    options.precision = &precision;
    const auto profilers = make_profilers(options, program.table, functions);
    REQUIRE(profilers.size() == 2);
    CHECK(profilers[0]->name() == "transitions");
    CHECK(profilers[1]->name() == "stack");
    CHECK(precision == 1);
    const auto loop = program.block(0x1000, 1, BlockExit::conditional, 0x1000);
    for (std::uint32_t i = 0; i < 300; ++i) {
        read(*profilers[0], TestTrace{i, i}.run(loop).run(loop).stop_before(0x1004));
        profilers[0]->end_sample(trace::SampleId{i});
    }
    CHECK(precision < 0.01);
    Hotlists lists;
    profilers[0]->yield(lists, Seen::samples);
    CHECK(lists.find<EdgeHotlist>()->totals.total == 600);
    CHECK(lists.find<CallHotlist>()->totals.total == 0);
    CHECK(lists.find<MethodHotlist>()->instructions.total == 600);
}

TEST_CASE("an unknown profile type is a mistake of usage that names the known ones") {
    TestProgram program;
    EvenlySpacedFunctions functions{0x1000};
    for (const auto* name : {"edges", "pat", "", "path,edge", "stack"}) {
        ProfileOptions options;
        options.names = {"path", name};
        try {
            make_profilers(options, program.table, functions);
            FAIL("accepted " << name);
        } catch (const UserError& e) {
            CHECK(e.status() == ExitStatus::bad_usage);
            CHECK(std::string{e.what()}.find("path, edge, call, method, value") !=
                  std::string::npos);
        }
    }
}

TEST_CASE("a run that saw the whole program has no intervals") {
    TestProgram program;
    const auto loop = program.block(0x1000, 1, BlockExit::conditional, 0x1000, 1);
    EvenlySpacedFunctions functions{0x1000};
    ProfileOptions options;
    options.names = {"path", "edge", "call", "method", "value"};
    TestTrace trace;
    trace.from_thread_start().run(loop, {1}).run(loop, {1}).stop_before(0x1004);
    Hotlists lists;
    for (const auto& profiler : make_profilers(options, program.table, functions)) {
        read(*profiler, trace);
        profiler->end_sample(trace.start.sample);
        profiler->yield(lists, Seen::everything);
    }
    for (const auto* totals :
         {&lists.find<PathHotlist>()->totals, &lists.find<EdgeHotlist>()->totals,
          &lists.find<CallHotlist>()->totals, &lists.find<MethodHotlist>()->totals,
          &lists.find<ValueHotlist>()->totals,
          &lists.find<ValueHotlist>()->entries.at(0).executions,
          &lists.find<StackHotlist>()->totals})
        CHECK(totals->exhaustive);
    const auto taken = estimate_share(lists.find<EdgeHotlist>()->entries.at(0).statistics,
                                      lists.find<EdgeHotlist>()->totals);
    CHECK(taken.low == taken.high);
}

TEST_CASE("stacks: one event for each thread of a sample") {
    StackProfiler profiler;
    const std::vector<Location> stack{at(0x1004), at(0x2000)}, other{at(0x1008), at(0x2000)};
    const auto begin = [&](std::uint32_t sample, std::uint32_t trace_id,
                           const std::vector<Location>& frames, bool from_thread_start = false) {
        TestTrace trace{sample, trace_id};
        trace.start.call_stack = frames;
        trace.start.from_thread_start = from_thread_start;
        read(profiler, trace);
    };
    begin(0, 0, stack);
    begin(0, 1, stack);
    begin(0, 2, {}, true);  // a thread that began in the sample
    begin(1, 3, other);
    profiler.end_sample(trace::SampleId{0});
    begin(1, 4, {});  // could not be unwound
    profiler.end_sample(trace::SampleId{1});
    Hotlists lists;
    profiler.yield(lists, Seen::samples);
    const auto& list = *lists.find<StackHotlist>();
    CHECK(list.totals.samples == 2);
    CHECK(list.totals.total == 4);
    CHECK(list.totals.unknown == 1);
    REQUIRE(list.entries.size() == 2);
    CHECK(list.entries[0].frames == stack);
    CHECK(list.entries[0].statistics.count == 2);
    CHECK(list.entries[1].frames == other);
}

}  // namespace shadowprof::profile
