#include "profile/path/path.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "test_program.h"

namespace shadowprof::profile {

namespace {

PathHotlist paths_of(const TestProgram& program, const TestTrace& trace) {
    PathProfiler profiler{program.table, 1};
    return *hotlists_of(profiler, trace).find<PathHotlist>();
}

struct Step {
    Location start;
    std::uint32_t instructions = 0;
};

// How often the path through exactly these blocks was counted.
std::uint64_t count_of(const PathHotlist& list, const std::vector<Step>& blocks) {
    for (const auto& entry : list.entries)
        if (std::equal(entry.blocks.begin(), entry.blocks.end(), blocks.begin(), blocks.end(),
                       [](const auto& a, const auto& b) {
                           return a.start == b.start && a.instructions == b.instructions;
                       }))
            return entry.statistics.count;
    return 0;
}

std::vector<BlockId> repeated(const std::vector<BlockId>& blocks, int times) {
    std::vector<BlockId> all;
    for (int i = 0; i < times; ++i) all.insert(all.end(), blocks.begin(), blocks.end());
    return all;
}

}  // namespace

TEST_CASE("a loop seen from the thread's start to its exit") {
    TestProgram program;
    const auto entry = program.block(0x100, 2, BlockExit::jump, 0x200);
    const auto body = program.block(0x200, 3, BlockExit::conditional, 0x200);
    const auto rest = program.block(0x20c, 1, BlockExit::system_call);
    TestTrace trace;
    trace.from_thread_start().run(entry).run(repeated({body}, 10)).run(rest).exit();
    const auto list = paths_of(program, trace);
    // Ten times round: the first round began at the entry, eight began at the body, and the last
    // round falls through and ends with the thread.
    CHECK(count_of(list, {{at(0x100), 2}, {at(0x200), 3}}) == 1);
    CHECK(count_of(list, {{at(0x200), 3}}) == 8);
    CHECK(count_of(list, {{at(0x200), 3}, {at(0x20c), 1}}) == 1);
    CHECK(list.totals.total == 10);
    CHECK(list.totals.unknown == 0);
    CHECK(list.entries.size() == 3);
    CHECK(list.entries.front().instructions() == 3);
    CHECK(list.entries.front().statistics.count == 8);
}

TEST_CASE("a sample that begins and ends anywhere has two unknown paths") {
    TestProgram program;
    const auto head = program.block(0x200, 3, BlockExit::conditional, 0x300);
    const auto tail = program.block(0x20c, 1, BlockExit::jump, 0x200);
    TestTrace trace;
    trace.run(tail).run(repeated({head, tail}, 5)).run(head).stop_before(0x20c);
    const auto list = paths_of(program, trace);
    CHECK(count_of(list, {{at(0x200), 3}, {at(0x20c), 1}}) == 5);
    CHECK(list.totals.unknown == 2);
    CHECK(list.totals.total == 7);
}

TEST_CASE("a last block whose exit is seen to go backward ends its path") {
    TestProgram program;
    const auto head = program.block(0x200, 3, BlockExit::conditional, 0x300);
    const auto tail = program.block(0x20c, 1, BlockExit::jump, 0x200);
    TestTrace trace;
    trace.run(tail).run({head, tail}).stop_before(0x200);
    const auto list = paths_of(program, trace);
    CHECK(count_of(list, {{at(0x200), 3}, {at(0x20c), 1}}) == 1);
    CHECK(list.totals.unknown == 1);
}

TEST_CASE("a Trace that never branches backward knows no path") {
    TestProgram program;
    const auto call = program.block(0x400, 1, BlockExit::call, 0x400);  // endless recursion
    TestTrace trace;
    trace.run(repeated({call}, 100)).stop_before(0x400);
    const auto list = paths_of(program, trace);
    CHECK(list.entries.empty());
    // 100 blocks are at least four paths.
    CHECK(list.totals.unknown == 4);
    CHECK(list.totals.total == 4);
}

TEST_CASE("calls and returns do not end a path, wherever they go") {
    TestProgram program;
    // A loop at 0x500 calls a function at 0x100, below it, which returns.
    const auto callee = program.block(0x100, 2, BlockExit::return_);
    const auto caller = program.block(0x500, 2, BlockExit::call, 0x100);
    const auto again = program.block(0x508, 2, BlockExit::conditional, 0x500);
    TestTrace trace;
    trace.run(again).run(repeated({caller, callee, again}, 4)).stop_before(0x510);
    const auto list = paths_of(program, trace);
    CHECK(count_of(list, {{at(0x500), 2}, {at(0x100), 2}, {at(0x508), 2}}) == 3);
    CHECK(list.totals.total == 5);  // and one partial at each end
}

TEST_CASE("32 blocks are the longest path") {
    TestProgram program;
    // Recursion: each level is one block. The head is known from the thread's start.
    const auto call = program.block(0x400, 1, BlockExit::call, 0x400);
    TestTrace trace;
    trace.from_thread_start().run(repeated({call}, 70)).stop_before(0x400);
    const auto list = paths_of(program, trace);
    CHECK(count_of(list, std::vector<Step>(32, {at(0x400), 1})) == 2);
    CHECK(list.totals.unknown == 1);  // the six left over
    CHECK(list.totals.total == 3);
}

TEST_CASE("a path may have 32 blocks and end with a backward branch at once") {
    TestProgram program;
    const auto call = program.block(0x400, 1, BlockExit::call, 0x400);
    const auto jump = program.block(0x404, 1, BlockExit::jump, 0x400);
    TestTrace trace;
    auto round = repeated({call}, 31);  // as if each call but the last came back to 0x400
    round.push_back(jump);
    trace.from_thread_start().run(repeated(round, 3)).exit();
    const auto list = paths_of(program, trace);
    CHECK(list.totals.total == 3);
    CHECK(list.totals.unknown == 0);
    CHECK(list.entries.size() == 1);
}

TEST_CASE("what is and what is no taken backward branch") {
    const auto ends = [](BlockExit exit, std::uint64_t target, std::uint64_t to,
                         trace::ModuleId module = program_module) {
        TestProgram program;
        const auto& block = program.table.at(program.block(0x1000, 4, exit, target));  // to 0x100c
        return is_taken_backward(block, Address{to}, at(to, module));
    };
    CHECK(ends(BlockExit::conditional, 0x1000, 0x1000));
    CHECK(ends(BlockExit::conditional, 0x100c, 0x100c));        // to itself
    CHECK_FALSE(ends(BlockExit::conditional, 0x1000, 0x1010));  // not taken
    CHECK_FALSE(ends(BlockExit::conditional, 0x100d, 0x100d));
    CHECK(ends(BlockExit::jump, 0x10, 0x10));
    CHECK_FALSE(ends(BlockExit::jump, 0x10, 0x10, trace::ModuleId{2}));
    CHECK(ends(BlockExit::indirect_jump, 0, 0x10));
    CHECK(ends(BlockExit::indirect_jump, 0, 0x100c));
    CHECK_FALSE(ends(BlockExit::indirect_jump, 0, 0x1010));
    CHECK_FALSE(ends(BlockExit::indirect_jump, 0, 0x10, trace::ModuleId{2}));
    CHECK_FALSE(ends(BlockExit::indirect_jump, 0, 0));  // unknown
    for (const auto exit :
         {BlockExit::call, BlockExit::indirect_call, BlockExit::return_, BlockExit::system_call,
          BlockExit::trap, BlockExit::length, BlockExit::cut})
        CHECK_FALSE(ends(exit, 0x10, 0x10));
}

TEST_CASE("a signal abandons the path, and its handler begins one") {
    TestProgram program;
    const auto head = program.block(0x200, 3, BlockExit::conditional, 0x300);
    const auto cut = program.block(0x20c, 2, BlockExit::cut);
    const auto rest = program.block(0x214, 2, BlockExit::jump, 0x200);
    const auto tail = program.block(0x20c, 4, BlockExit::jump, 0x200);
    const auto handler = program.block(0x800, 2, BlockExit::jump, 0x700);
    const auto sigreturn = program.block(0x700, 1, BlockExit::system_call);
    TestTrace trace;
    trace.from_thread_start()
        .run({head, tail, head, cut})
        .interrupt(0x214)
        .run({handler, sigreturn})
        .interrupt(0x704)
        .run({rest, head, tail})
        .stop_before(0x200);
    const auto list = paths_of(program, trace);
    CHECK(count_of(list, {{at(0x200), 3}, {at(0x20c), 4}}) == 2);
    CHECK(count_of(list, {{at(0x800), 2}}) == 1);
    CHECK(count_of(list, {{at(0x214), 2}}) == 1);
    CHECK(list.totals.unknown == 2);  // head, cut; and sigreturn
    CHECK(list.totals.total == 6);
}

TEST_CASE("a signal between two paths abandons nothing") {
    TestProgram program;
    const auto body = program.block(0x200, 3, BlockExit::conditional, 0x200);
    const auto handler = program.block(0x800, 2, BlockExit::jump, 0x700);
    TestTrace trace;
    // The loop's branch was taken; then the handler came in its target's stead.
    trace.from_thread_start().run({body, body}).interrupt(0x200).run(handler).stop_before(0x700);
    const auto list = paths_of(program, trace);
    CHECK(count_of(list, {{at(0x200), 3}}) == 2);
    CHECK(count_of(list, {{at(0x800), 2}}) == 1);
    CHECK(list.totals.unknown == 0);
}

TEST_CASE("the same place under two ids is the same path") {
    TestProgram program;
    const auto first = program.block(0x200, 3, BlockExit::conditional, 0x200);
    const auto second = program.block(0x200, 3, BlockExit::conditional, 0x200);
    TestTrace trace;
    trace.from_thread_start().run({first, second, first, second}).stop_before(0x200);
    const auto list = paths_of(program, trace);
    CHECK(list.entries.size() == 1);
    CHECK(count_of(list, {{at(0x200), 3}}) == 4);
}

TEST_CASE("paths of the same blocks in another order are other paths") {
    TestProgram program;
    const auto loop = program.block(0x900, 1, BlockExit::indirect_jump);  // down to either
    const auto a = program.block(0x200, 1, BlockExit::indirect_call);
    const auto b = program.block(0x300, 1, BlockExit::indirect_call);
    TestTrace trace;
    trace.from_thread_start()
        .run({a, b, loop, b, a, loop, a, a, b, b, loop, b, b, a, a, loop})
        .exit();
    const auto list = paths_of(program, trace);
    CHECK(list.entries.size() == 4);
    CHECK(list.totals.total == 4);
}

TEST_CASE("each sample is a unit of the statistics, also where samples are read in turn") {
    TestProgram program;
    const auto body = program.block(0x200, 3, BlockExit::conditional, 0x200);
    const auto after = program.block(0x20c, 1, BlockExit::jump, 0x200);
    TestTrace first{0, 0}, second{1, 1};
    first.from_thread_start().run(repeated({body}, 6)).stop_before(0x200);
    second.from_thread_start().run(repeated({body, after}, 2)).run({body, body}).stop_before(0x200);
    PathProfiler profiler{program.table, 1};
    const auto one = profiler.open(first.start);
    const auto other = profiler.open(second.start);
    one->digest(first.all);
    other->digest(second.all);
    one->finish(first.end);
    profiler.end_sample(first.start.sample, 1);
    other->finish(second.end);
    profiler.end_sample(second.start.sample, 1);
    Hotlists lists;
    profiler.yield(lists, Seen::samples);
    Totals totals;
    totals.add_sample(6);
    totals.add_sample(4);  // body, after; body, after; body; body
    CHECK(lists.find<PathHotlist>()->totals == totals);
    Statistics loop;
    loop.add_sample(6, 6);
    loop.add_sample(2, 4);
    REQUIRE(lists.find<PathHotlist>()->entries.size() == 2);
    CHECK(lists.find<PathHotlist>()->entries[0].statistics == loop);
}

TEST_CASE("more paths than there is room for: the hot ones stay, and everything is accounted for") {
    // Path i goes through block i of 5000; one in three is path 0.
    TestProgram program;
    constexpr std::size_t most = 500;
    std::vector<BlockId> blocks;
    for (std::uint64_t i = 0; i < 5000; ++i)
        blocks.push_back(program.block(0x10000 + 0x10 * i, 1, BlockExit::indirect_jump));
    const auto back = program.block(0x9000, 1, BlockExit::jump, 0x8000);
    const auto head = program.block(0x8000, 1, BlockExit::indirect_jump);
    PathProfiler profiler{program.table, 5, most};
    for (std::uint32_t sample = 0; sample < 20; ++sample) {
        TestTrace trace{sample, sample};
        trace.from_thread_start();
        for (std::uint32_t i = 0; i < 600; ++i) {
            const auto which = i % 3 == 0 ? 0 : 1 + (sample * 400 + i) % 4999;
            // An indirect jump up, one down to `back`, which jumps to the head.
            trace.run({head, blocks[which], back});
        }
        trace.stop_before(0x8000);
        read(profiler, trace);
        profiler.end_sample(trace.start.sample, 1);
    }
    Hotlists lists;
    profiler.yield(lists, Seen::samples);
    const auto& list = *lists.find<PathHotlist>();
    CHECK(list.entries.size() <= most);
    // Each round is two paths: up to the indirect jump down, and the block that jumps to the head.
    CHECK(list.totals.total == 20 * 600 * 2);
    CHECK(sum_of_counts(list.entries) + list.totals.unknown == list.totals.total);
    CHECK(count_of(list, {{at(0x9000), 1}}) == 12000);
    CHECK(count_of(list, {{at(0x8000), 1}, {at(0x10000), 1}}) == 4000);
    CHECK(list.totals.unknown > 0);
}

TEST_CASE("counted paths that do not fit leave and count as unknown like others") {
    TestProgram program;
    constexpr std::size_t room = 50;
    PathProfiler profiler{program.table, 1, room};
    const auto hot = program.block(0x100, 1, BlockExit::jump, 0x100);
    PathFacts facts{program.table};
    std::uint64_t total = 0, admitted = 0;
    for (std::uint32_t piece = 0; piece < 20; ++piece) {
        Counts counts;
        BlockId told{};
        counts.blocks_of = [&](const Counts::Path& path) {
            told = BlockId{path.place.state};
            return std::span{&told, 1};
        };
        const auto add = [&](BlockId block, std::uint64_t count) {
            facts.learn();
            counts.paths.push_back({.key = facts.at(block).in_path(0),
                                    .count = count,
                                    .place = {.state = static_cast<std::uint32_t>(block)}});
        };
        add(hot, 100'000);
        total += 100'000;
        for (std::uint64_t i = 0; i < 100; ++i) {
            const auto rare =
                program.block(0x1000 * (piece + 1) + 4 * i, 1, BlockExit::jump, 0x1000);
            add(rare, 1 + i % 3);
            total += 1 + i % 3;
        }
        counts.unknown_paths = 5;
        total += 5;
        profiler.count(trace::SampleId{0}, counts);
    }
    profiler.end_sample(trace::SampleId{0}, 1);
    Hotlists lists;
    profiler.yield(lists, Seen::samples);
    for (const auto& entry : lists.find<PathHotlist>()->entries) admitted += entry.statistics.count;
    CHECK(lists.find<PathHotlist>()->totals.total == total);
    CHECK(admitted + lists.find<PathHotlist>()->totals.unknown == total);
    CHECK(lists.find<PathHotlist>()->entries.size() <= room);
    CHECK(lists.find<PathHotlist>()->entries.at(0).statistics.count == 2'000'000);
}

}  // namespace shadowprof::profile
