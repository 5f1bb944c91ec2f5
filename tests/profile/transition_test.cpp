// Edges, calls and methods, on programs whose counts are worked out in the comments.
#include <doctest/doctest.h>

#include "profile/call/call.h"
#include "profile/edge/edge.h"
#include "profile/method/method.h"
#include "test_program.h"

namespace shadowprof::profile {

namespace {

template <class Profile, class... Arguments>
TransitionProfiler profiler_of(const TestProgram& program, Arguments&... arguments) {
    TransitionProfiler::Profiles profiles;
    profiles.push_back(std::make_unique<Profile>(arguments...));
    return {program.table, std::move(profiles)};
}

EdgeHotlist edges_of(const TestProgram& program, const TestTrace& trace) {
    auto profiler = profiler_of<EdgeProfile>(program);
    return *hotlists_of(profiler, trace).find<EdgeHotlist>();
}
CallHotlist calls_of(const TestProgram& program, const TestTrace& trace) {
    auto profiler = profiler_of<CallProfile>(program);
    return *hotlists_of(profiler, trace).find<CallHotlist>();
}
// Functions begin at multiples of 0x1000.
MethodHotlist methods_of(const TestProgram& program, const TestTrace& trace) {
    EvenlySpacedFunctions functions{0x1000};
    auto profiler = profiler_of<MethodProfile>(program, functions);
    return *hotlists_of(profiler, trace).find<MethodHotlist>();
}

std::uint64_t count_of(const EdgeHotlist& list, std::uint64_t from, std::uint64_t to,
                       EdgeKind kind) {
    for (const auto& e : list.entries)
        if (e.from == at(from) && e.to == at(to) && e.kind == kind) return e.statistics.count;
    return 0;
}
std::uint64_t count_of(const CallHotlist& list, std::uint64_t from, std::uint64_t to) {
    for (const auto& e : list.entries)
        if (e.from == at(from) && e.to == at(to)) return e.statistics.count;
    return 0;
}
MethodHotlist::Entry method(const MethodHotlist& list, std::uint64_t function) {
    for (const auto& e : list.entries)
        if (e.function == at(function)) return e;
    return {};
}

}  // namespace

TEST_CASE("a 3:1 branch") {
    // 0x1000: a branch that is taken to 0x1010 three times of four, else falls to 0x1008, from
    // where a jump leads to 0x1010; 0x1010 jumps back.
    TestProgram program;
    const auto branch = program.block(0x1000, 2, BlockExit::conditional, 0x1010);
    const auto other = program.block(0x1008, 2, BlockExit::jump, 0x1010);
    const auto again = program.block(0x1010, 2, BlockExit::jump, 0x1000);
    TestTrace trace;
    for (int i = 0; i < 8; ++i) {
        trace.run(branch);
        if (i % 4 == 0) trace.run(other);
        trace.run(again);
    }
    trace.stop_before(0x1000);
    const auto list = edges_of(program, trace);
    CHECK(count_of(list, 0x1004, 0x1010, EdgeKind::taken) == 6);
    CHECK(count_of(list, 0x1004, 0x1008, EdgeKind::fallthrough) == 2);
    CHECK(count_of(list, 0x100c, 0x1010, EdgeKind::taken) == 2);
    CHECK(count_of(list, 0x1014, 0x1000, EdgeKind::taken) == 8);
    CHECK(list.entries.size() == 4);
    CHECK(list.totals.total == 18);
    CHECK(list.totals.unknown == 0);
    // Sorted by count, ties by place.
    CHECK(list.entries[0].statistics.count == 8);
    CHECK(list.entries[2].from == at(0x1004));
    CHECK(list.entries[3].from == at(0x100c));
}

TEST_CASE("every kind of exit") {
    TestProgram program;
    const auto direct = program.block(0x1000, 1, BlockExit::call, 0x2000);
    const auto callee = program.block(0x2000, 1, BlockExit::return_);
    const auto indirect = program.block(0x1004, 1, BlockExit::indirect_call);
    const auto table = program.block(0x1008, 1, BlockExit::indirect_jump);
    const auto longest = program.block(0x1100, 64, BlockExit::length);
    const auto call = program.block(0x1200, 1, BlockExit::system_call);
    const auto cut = program.block(0x1204, 1, BlockExit::cut);
    const auto last = program.block(0x1208, 1, BlockExit::jump, 0x1000);
    TestTrace trace;
    trace.run({direct, callee, indirect, callee, table, longest, call, cut, last})
        .stop_before(0x1000);
    const auto list = edges_of(program, trace);
    CHECK(count_of(list, 0x1000, 0x2000, EdgeKind::call) == 1);
    CHECK(count_of(list, 0x2000, 0x1004, EdgeKind::return_) == 1);
    CHECK(count_of(list, 0x1004, 0x2000, EdgeKind::call) == 1);
    CHECK(count_of(list, 0x2000, 0x1008, EdgeKind::return_) == 1);
    CHECK(count_of(list, 0x1008, 0x1100, EdgeKind::indirect) == 1);
    CHECK(count_of(list, 0x1208, 0x1000, EdgeKind::taken) == 1);
    CHECK(list.totals.total == 6);  // blocks that end for length, in a system call or cut have none
}

TEST_CASE("a branch to the next instruction is taken") {
    TestProgram program;
    const auto branch = program.block(0x1000, 1, BlockExit::conditional, 0x1004);
    TestTrace trace;
    trace.run(branch).stop_before(0x1004);
    CHECK(count_of(edges_of(program, trace), 0x1000, 0x1004, EdgeKind::taken) == 1);
}

TEST_CASE("an edge is the same however its block was entered") {
    TestProgram program;
    const auto whole = program.block(0x1000, 3, BlockExit::jump, 0x1000);
    const auto middle = program.block(0x1004, 2, BlockExit::jump, 0x1000);
    TestTrace trace;
    trace.run({middle, whole, whole}).stop_before(0x1000);
    const auto list = edges_of(program, trace);
    CHECK(list.entries.size() == 1);
    CHECK(count_of(list, 0x1008, 0x1000, EdgeKind::taken) == 3);
}

TEST_CASE("a signal does not hide the edge that it cut off, and makes none of its own") {
    TestProgram program;
    const auto branch = program.block(0x1000, 2, BlockExit::conditional, 0x1000);
    const auto handler = program.block(0x5000, 1, BlockExit::return_);
    const auto restorer = program.block(0x6000, 1, BlockExit::system_call);
    const auto rest = program.block(0x1008, 1, BlockExit::jump, 0x1000);
    TestTrace trace;
    trace.run(branch)
        .interrupt(0x1008)  // it fell through
        .run({handler, restorer})
        .interrupt(0x6004)
        .run(rest)
        .stop_before(0x1000);
    const auto list = edges_of(program, trace);
    CHECK(count_of(list, 0x1004, 0x1008, EdgeKind::fallthrough) == 1);
    CHECK(count_of(list, 0x5000, 0x6000, EdgeKind::return_) == 1);
    CHECK(count_of(list, 0x1008, 0x1000, EdgeKind::taken) == 1);
    CHECK(list.totals.total == 3);
}

TEST_CASE("two signals at once") {
    TestProgram program;
    const auto jump = program.block(0x1000, 1, BlockExit::jump, 0x2000);
    const auto handler = program.block(0x5000, 1, BlockExit::jump, 0x5000);
    TestTrace trace;
    // The second signal comes before the first handler's first instruction.
    trace.run(jump).interrupt(0x2000).interrupt(0x4000).run(handler).stop_before(0x5000);
    const auto list = edges_of(program, trace);
    CHECK(count_of(list, 0x1000, 0x2000, EdgeKind::taken) == 1);
    CHECK(count_of(list, 0x5000, 0x5000, EdgeKind::taken) == 1);
    CHECK(list.totals.total == 2);
}

TEST_CASE("a branch whose target nobody saw is unknown") {
    TestProgram program;
    const auto branch = program.block(0x1000, 1, BlockExit::indirect_jump);
    const auto call = program.block(0x1000, 1, BlockExit::indirect_call);
    CHECK(edges_of(program, TestTrace{}.run(branch).exit()).totals.unknown == 1);
    CHECK(calls_of(program, TestTrace{}.run(call).exit()).totals.unknown == 1);
    CHECK(methods_of(program, TestTrace{}.run(call).exit()).totals.unknown == 1);
    // One that cannot lead where control went is not said to have led there.
    const auto jump = program.block(0x3000, 1, BlockExit::jump, 0x4000);
    const auto list = edges_of(program, TestTrace{}.run(jump).stop_before(0x5000));
    CHECK(list.totals.unknown == 1);
    CHECK(list.entries.empty());
}

TEST_CASE("an indirect jump with many targets") {
    TestProgram program;
    const auto jump = program.block(0x1000, 1, BlockExit::indirect_jump);
    std::vector<BlockId> cases;
    for (std::uint64_t i = 0; i < 50; ++i)
        cases.push_back(program.block(0x2000 + 0x10 * i, 1, BlockExit::jump, 0x1000));
    // Case i is taken i + 1 times.
    TestTrace trace;
    for (std::size_t i = 0; i < cases.size(); ++i)
        for (std::size_t k = 0; k <= i; ++k) trace.run({jump, cases[i]});
    trace.stop_before(0x1000);
    const auto list = edges_of(program, trace);
    for (std::uint64_t i = 0; i < 50; ++i) {
        CHECK(count_of(list, 0x1000, 0x2000 + 0x10 * i, EdgeKind::indirect) == i + 1);
        CHECK(count_of(list, 0x2000 + 0x10 * i, 0x1000, EdgeKind::taken) == i + 1);
    }
    CHECK(list.totals.total == 2 * 1275);
}

namespace {

// main at 0x1000 calls f at 0x2000, which calls itself while its branch falls through.
struct Recursion {
    TestProgram program;
    BlockId call_f = program.block(0x1000, 2, BlockExit::call, 0x2000);
    BlockId main_after = program.block(0x1008, 1, BlockExit::jump, 0x1000);
    BlockId f = program.block(0x2000, 3, BlockExit::conditional, 0x2014);
    BlockId f_recurse = program.block(0x200c, 1, BlockExit::call, 0x2000);
    BlockId f_after = program.block(0x2010, 1, BlockExit::length);
    BlockId f_return = program.block(0x2014, 1, BlockExit::return_);

    // f to the depth given, then back in main.
    void run(TestTrace& trace, int depth) {
        trace.run(call_f);
        for (int i = 1; i < depth; ++i) trace.run({f, f_recurse});
        trace.run({f, f_return});
        for (int i = 1; i < depth; ++i) trace.run({f_after, f_return});
        trace.run(main_after);
    }
};

}  // namespace

TEST_CASE("recursion") {
    Recursion recursion;
    TestTrace trace;
    recursion.run(trace, 4);
    recursion.run(trace, 1);
    trace.stop_before(0x1000);

    const auto calls = calls_of(recursion.program, trace);
    CHECK(count_of(calls, 0x1004, 0x2000) == 2);  // from main
    CHECK(count_of(calls, 0x200c, 0x2000) == 3);  // 4 levels have 3 calls
    CHECK(calls.totals.total == 5);
    CHECK(calls.totals.unknown == 0);

    const auto methods = methods_of(recursion.program, trace);
    const auto f = method(methods, 0x2000);
    CHECK(f.calls == 5);
    CHECK(f.back_edges == 0);
    CHECK(f.statistics.count == 5);
    // 5 times f (3 instructions) and f_return (1), 3 times f_recurse and f_after (1 each).
    CHECK(f.instructions.count == 5 * 4 + 3 * 2);
    const auto main = method(methods, 0x1000);
    CHECK(main.calls == 0);
    CHECK(main.back_edges == 2);
    CHECK(main.instructions.count == 2 * 3);
    CHECK(methods.totals.total == 7);
    CHECK(methods.instructions.total == 26 + 6);
    CHECK(methods.entries.front().function == at(0x2000));

    const auto edges = edges_of(recursion.program, trace);
    CHECK(count_of(edges, 0x2014, 0x1008, EdgeKind::return_) == 2);
    CHECK(count_of(edges, 0x2014, 0x2010, EdgeKind::return_) == 3);
    CHECK(count_of(edges, 0x2008, 0x2014, EdgeKind::taken) == 2);
    CHECK(count_of(edges, 0x2008, 0x200c, EdgeKind::fallthrough) == 3);
}

TEST_CASE("loops and tail calls of functions") {
    TestProgram program;
    const auto call = program.block(0x1000, 1, BlockExit::call, 0x2000);
    const auto stub = program.block(0x2000, 1, BlockExit::indirect_jump);  // as in a PLT
    const auto body = program.block(0x3000, 2, BlockExit::conditional, 0x3000);
    const auto tail = program.block(0x3008, 2, BlockExit::jump, 0x2800);  // not to an entry
    const auto middle = program.block(0x2800, 1, BlockExit::conditional, 0x4000);
    const auto taken = program.block(0x4000, 1, BlockExit::return_);
    const auto after = program.block(0x1004, 1, BlockExit::jump, 0x1000);
    TestTrace trace;
    for (int i = 0; i < 3; ++i)
        trace.run({call, stub, body, body, body, tail, middle, taken, after});
    trace.stop_before(0x1000);
    const auto list = methods_of(program, trace);
    // The stub is called; the function behind it is entered by a jump.
    CHECK(method(list, 0x2000).calls == 3);
    CHECK(method(list, 0x2000).tail_calls == 0);
    CHECK(method(list, 0x3000).calls == 0);
    CHECK(method(list, 0x3000).tail_calls == 3);
    CHECK(method(list, 0x3000).back_edges == 6);  // three rounds are two jumps back
    CHECK(method(list, 0x4000).tail_calls == 3);  // by a conditional branch
    CHECK(method(list, 0x1000).back_edges == 3);
    // The jump back into the middle of another function belongs to neither.
    CHECK(list.totals.unknown == 3);
    CHECK(list.totals.total == 3 + 6 + 3 + 3);
    CHECK(sum_of_counts(list.entries) + list.totals.unknown == list.totals.total);
}

TEST_CASE("code of no known function") {
    constexpr trace::ModuleId stripped{7};
    TestProgram program;
    const auto body = program.block(0x3000, 4, BlockExit::conditional, 0x3000, 0, stripped);
    TestTrace trace;
    trace.run({body, body, body});
    trace.end.continuation = Address{0x3010};
    trace.end.continuation_place = at(0x3010, stripped);
    const auto list = methods_of(program, trace);
    // Two jumps back: in some function, but nobody knows which.
    CHECK(list.totals.total == 2);
    CHECK(list.totals.unknown == 2);
    CHECK(list.instructions.total == 12);
}

TEST_CASE("each sample is a unit of the statistics") {
    TestProgram program;
    const auto body = program.block(0x1000, 2, BlockExit::conditional, 0x1000);
    const auto after = program.block(0x1008, 1, BlockExit::jump, 0x1000);
    auto profiler = profiler_of<EdgeProfile>(program);
    for (std::uint32_t i = 0; i < 2; ++i) {
        TestTrace trace{i, i};
        trace.run({body, body, body, after}).stop_before(0x1000);
        if (i == 1) trace.run({body, body}).stop_before(0x1008);
        read(profiler, trace);
        profiler.end_sample(trace.start.sample, 1);
    }
    Hotlists lists;
    profiler.yield(lists, Seen::samples);
    // Sample 0: back twice, through once, jump once. Sample 1: one more of back and through.
    Totals totals;
    totals.add_sample(4);
    totals.add_sample(6);
    CHECK(lists.find<EdgeHotlist>()->totals == totals);
    Statistics back, through;
    back.add_sample(2, 4);
    back.add_sample(3, 6);
    through.add_sample(1, 4);
    through.add_sample(2, 6);
    CHECK(lists.find<EdgeHotlist>()->entries.at(0).statistics == back);
    CHECK(lists.find<EdgeHotlist>()->entries.at(1).statistics == through);
}

}  // namespace shadowprof::profile
