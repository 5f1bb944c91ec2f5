#include <doctest/doctest.h>

#include <atomic>

#include "base/error.h"
#include "profile/registry.h"
#include "test_program.h"

namespace shadowprof::profile {

TEST_CASE("profile types by name") {
    TestProgram program;
    EvenlySpacedFunctions functions{0x1000};
    ProfileOptions options;
    options.names = {"value", "path"};
    const auto profilers = make_profilers(options, program.table, functions);
    REQUIRE(profilers.size() == 2);
    CHECK(profilers[0]->name() == "path");
    CHECK(profilers[1]->name() == "value");
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
    REQUIRE(profilers.size() == 1);
    CHECK(profilers[0]->name() == "transitions");
    CHECK(precision == 1);
    const auto loop = program.block(0x1000, 1, BlockExit::conditional, 0x1000);
    for (std::uint32_t i = 0; i < 300; ++i) {
        read(*profilers[0], TestTrace{i, i}.run(loop).run(loop).stop_before(0x1004));
        profilers[0]->end_sample(trace::SampleId{i}, 1);
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
    for (const auto* name : {"edges", "pat", "", "path,edge", "caller"}) {
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
    options.names = {"context", "path", "edge", "call", "method", "value"};
    TestTrace trace;
    trace.from_thread_start().run(loop, {1}).run(loop, {1}).stop_before(0x1004);
    Hotlists lists;
    for (const auto& profiler : make_profilers(options, program.table, functions)) {
        read(*profiler, trace);
        profiler->end_sample(trace.start.sample, 1);
        profiler->yield(lists, Seen::everything);
    }
    for (const auto* totals :
         {&lists.find<PathHotlist>()->totals, &lists.find<EdgeHotlist>()->totals,
          &lists.find<CallHotlist>()->totals, &lists.find<MethodHotlist>()->totals,
          &lists.find<ValueHotlist>()->totals,
          &lists.find<ValueHotlist>()->entries.at(0).executions,
          &lists.find<ContextHotlist>()->totals, &lists.find<CallerHotlist>()->totals})
        CHECK(totals->exhaustive);
    const auto taken = estimate_share(lists.find<EdgeHotlist>()->entries.at(0).statistics,
                                      lists.find<EdgeHotlist>()->totals);
    CHECK(taken.low == taken.high);
}

}  // namespace shadowprof::profile
