#include "profile/context/context.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "decoder/decoder.h"
#include "profile/registry.h"
#include "random_program.h"
#include "trace/segment.h"

namespace shadowprof::profile {

namespace {

constexpr auto ret = BlockExit::return_;
constexpr auto call = BlockExit::call;
constexpr auto jump = BlockExit::jump;
constexpr auto indirect = BlockExit::indirect_jump;
constexpr auto plain = BlockExit::system_call;

// Functions begin at multiples of 0x1000 and are called by that digit: "1 2 2".
struct Contexts {
    TestProgram program;
    EvenlySpacedFunctions functions{0x1000};
    std::unique_ptr<ContextProfiler> profiler;

    explicit Contexts(std::size_t most_nodes = CallTree::default_most_nodes)
        : profiler(std::make_unique<ContextProfiler>(program.table, functions, most_nodes)) {}

    BlockId block(std::uint64_t start, std::size_t instructions, BlockExit exit,
                  std::uint64_t target = 0) {
        return program.block(start, instructions, exit, target);
    }
    // Of a function's first block arguments may be captured.
    BlockId entry(std::uint64_t start, std::size_t instructions, BlockExit exit,
                  std::uint64_t target = 0) {
        auto with_arguments = program.table.at(block(start, instructions, exit, target));
        for (const auto number : trace::argument_registers)
            with_arguments.slots.push_back({trace::Capture::arguments, 0, number, 64});
        return program.table.publish(std::move(with_arguments)).id;
    }
    // endbr64; jmp [rip + x], as calls leave a module by.
    BlockId stub(std::uint64_t start) {
        static const std::uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 0, 0, 0};
        trace::Block block;
        block.exit = indirect;
        block.start = Address{start};
        block.place = at(start);
        std::span rest{reinterpret_cast<const std::byte*>(code), sizeof code};
        for (auto where = block.start; !rest.empty();) {
            const auto instruction = decoder::decode(rest, where);
            REQUIRE(instruction);
            block.instructions.push_back(*instruction);
            where = instruction->end();
            rest = rest.subspan(instruction->length);
        }
        return program.table.publish(std::move(block)).id;
    }

    struct Counts {
        std::uint64_t self, inclusive, calls;
        bool operator==(const Counts&) const = default;
    };
    using ByContext = std::map<std::string, Counts>;
    ContextHotlist contexts;
    CallerHotlist callers;

    ByContext yield(Seen seen = Seen::samples) {
        Hotlists lists;
        profiler->yield(lists, seen);
        contexts = *lists.find<ContextHotlist>();
        callers = *lists.find<CallerHotlist>();
        ByContext all;
        for (const auto& e : contexts.entries) {
            auto name =
                e.root == ContextRoot::thread ? "" : std::string(model::name_of(e.root)) + ": ";
            for (const auto& f : e.frames)
                name += (name.empty() || name.ends_with(' ') ? "" : " ") +
                        fmt::format("{:x}", f.offset / 0x1000);
            all[name] = {e.statistics.count, e.inclusive.count, e.calls};
        }
        return all;
    }
    ByContext of(TestTrace& trace) {
        read(*profiler, trace);
        profiler->end_sample(trace.start.sample, 1);
        return yield();
    }
    // From call to return: "2" of a function, "1 2" of the calls of 2 by 1.
    std::map<std::string, Counts> by_caller() const {
        std::map<std::string, Counts> all;
        for (const auto& e : callers.entries)
            all[(e.caller ? fmt::format("{:x} ", e.caller->offset / 0x1000) : "") +
                fmt::format("{:x}", e.function.offset / 0x1000)] = {0, e.inclusive.count, e.calls};
        return all;
    }
};

using ByContext = Contexts::ByContext;

}  // namespace

TEST_CASE("samples that are kept have their calls and returns in order") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 3, call, 0x2000);
    const auto two_calls = c.block(0x2000, 2, call, 0x3000);
    const auto three = c.block(0x3000, 5, ret);
    const auto two_returns = c.block(0x2008, 1, ret);
    const auto main_calls_three = c.block(0x100c, 4, call, 0x3000);
    const auto main_ends = c.block(0x101c, 1, plain);
    constexpr std::size_t most = 2;
    ContextProfiler profiler{c.program.table, c.functions, CallTree::default_most_nodes, most, 1};
    for (std::uint32_t sample = 0; sample < 20; ++sample) {
        TestTrace trace;
        trace.start.trace = static_cast<trace::TraceId>(sample);
        trace.start.sample = static_cast<trace::SampleId>(sample);
        trace.start.thread = "worker";
        trace.from_thread_start().run(
            {main_calls, two_calls, three, two_returns, main_calls_three, three, main_ends});
        read(profiler, trace);
        profiler.end_sample(trace.start.sample, 1);
    }
    Hotlists lists;
    profiler.yield(lists, Seen::samples);
    const auto& list = *lists.find<SampleHotlist>();
    CHECK(list.totals.samples == most);
    CHECK(list.totals.total == most * 21);
    CHECK(list.totals.unknown == 0);
    const auto first = list.entries.front().sample;
    std::string text;
    for (const auto& e : list.entries) {
        CHECK(e.name == "worker");
        if (e.sample != first) continue;
        text += fmt::format("{}:", e.depth);
        for (const auto& frame : e.frames) text += fmt::format(" {:x}", frame.offset / 0x1000);
        text += fmt::format(" {}; ", e.instructions);
    }
    CHECK(list.entries.size() == most * 7);
    CHECK(text == "0: 1 3; 1: 2 2; 2: 3 5; 1: 2 1; 0: 1 4; 1: 3 5; 0: 1 1; ");
}

TEST_CASE("calls that are kept have the arguments with which their function began") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 3, call, 0x2000);
    const auto two = c.entry(0x2000, 2, BlockExit::conditional, 0x2000);  // a loop
    const auto two_jumps = c.block(0x2008, 1, jump, 0x3000);              // a tail call
    const auto three = c.entry(0x3000, 5, ret);
    const auto main_ends = c.block(0x100c, 1, plain);
    using Words = std::vector<std::uint64_t>;
    const Words called{1, 2, 3, 4, 5, 6}, again{7, 7, 7, 7, 7, 7},
        tail_called{10, 20, 30, 40, 50, 60};
    TestTrace trace;
    trace.from_thread_start().run(main_calls).run(two, called).run(two, again).run(two_jumps);
    trace.run(three, tail_called).run(main_ends);
    trace::SegmentTable segments;
    trace::SegmentChunk chunk;
    chunk.segments = {segments.publish(std::vector{main_calls, two, two, two_jumps}),
                      segments.publish(std::vector{three, main_ends})};
    for (const auto& words : {called, again, tail_called})
        chunk.arguments.insert(chunk.arguments.end(), words.begin(), words.end());
    for (const bool with_segments : {false, true}) {
        ContextProfiler keeps{c.program.table, c.functions, CallTree::default_most_nodes, 1, 1};
        CHECK(keeps.captures().functions() == &c.functions);
        CHECK_FALSE(keeps.captures().has_slots());
        const auto reader = keeps.open(trace.start);
        if (with_segments)
            reader->digest(chunk, segments);
        else
            reader->digest(trace.all);
        reader->finish(trace.end);
        keeps.end_sample(trace.start.sample, 1);
        Hotlists lists;
        keeps.yield(lists, Seen::samples);
        std::vector<Words> arguments;
        for (const auto& e : lists.find<SampleHotlist>()->entries) arguments.push_back(e.arguments);
        CHECK(arguments == std::vector<Words>{{}, called, tail_called, {}});
    }
    CHECK(c.profiler->captures().empty());
}

TEST_CASE("of a long sample the beginning is kept, and the rest is counted") {
    constexpr std::uint64_t most = 1000;
    CallRecord record{"main", most};
    for (std::uint64_t n = 0; n < most && !record.is_full(); ++n) {
        record.add({1}, 2);
        if (!record.is_full()) record.add({1, 2}, 3);
    }
    CHECK(record.is_full());
    CHECK(record.stretches().size() == most);
    CHECK(record.all() == 5 * most / 2);
    record.skip(100);
    CHECK(record.all() == 5 * most / 2 + 100);
    CHECK(record.stretches().back().depth == 1);
}

TEST_CASE("contexts: calls and returns") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 3, call, 0x2000);
    const auto two_calls = c.block(0x2000, 2, call, 0x3000);
    const auto three = c.block(0x3000, 5, ret);
    const auto two_returns = c.block(0x2008, 1, ret);
    const auto main_calls_three = c.block(0x100c, 4, call, 0x3000);
    const auto main_ends = c.block(0x101c, 1, plain);
    TestTrace trace;
    trace.from_thread_start().run(
        {main_calls, two_calls, three, two_returns, main_calls_three, three, main_ends});
    const auto found = c.of(trace);
    CHECK(
        found ==
        ByContext{{"1", {8, 21, 0}}, {"1 2", {3, 8, 1}}, {"1 2 3", {5, 5, 1}}, {"1 3", {5, 5, 1}}});
    CHECK(c.contexts.totals.total == 21);
    CHECK(c.contexts.totals.unknown == 0);
    CHECK(c.by_caller() == ByContext{{"1", {0, 21, 0}},
                                     {"2", {0, 8, 1}},
                                     {"3", {0, 10, 2}},
                                     {"1 2", {0, 8, 1}},
                                     {"2 3", {0, 5, 1}},
                                     {"1 3", {0, 5, 1}}});
}

TEST_CASE("contexts begin with the stack at which a Trace begins") {
    Contexts c;
    const auto in_three = c.block(0x3008, 2, ret);
    const auto in_two = c.block(0x2010, 3, ret);
    const auto in_one = c.block(0x1100, 1, plain);
    TestTrace trace;
    trace.start.call_stack = {at(0x3008), at(0x2010), at(0x1100)};
    trace.run({in_three, in_two, in_one});
    CHECK(c.of(trace) == ByContext{{"1", {1, 6, 0}}, {"1 2", {3, 5, 0}}, {"1 2 3", {2, 2, 0}}});
}

TEST_CASE("contexts: a return to nobody who is known has unknown callers") {
    Contexts c;
    const auto in_three = c.block(0x3008, 2, ret);
    const auto in_two = c.block(0x2010, 3, ret);
    TestTrace trace;
    trace.run({in_three, in_two});
    CHECK(c.of(trace) == ByContext{{"unknown: 3", {2, 2, 0}}, {"unknown: 2", {3, 3, 0}}});
}

TEST_CASE("contexts: a stack that could not be followed has unknown callers") {
    Contexts c;
    const auto in_three = c.block(0x3008, 2, plain);
    TestTrace trace;
    trace.start.call_stack = {at(0x3008)};
    trace.run(in_three);
    CHECK(c.of(trace) == ByContext{{"unknown: 3", {2, 2, 0}}});
}

TEST_CASE("contexts: recursion is counted once, and folded where it is deep") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 1, call, 0x2000);
    const auto recurses = c.block(0x2000, 2, call, 0x2000);
    const auto returns = c.block(0x2008, 1, ret);
    const auto deepest = c.block(0x200c, 4, ret);
    const auto main_ends = c.block(0x1004, 1, plain);
    TestTrace trace;
    trace.from_thread_start().run(main_calls);
    constexpr int depth = 10;
    for (int i = 0; i < depth; ++i) trace.run(recurses);
    trace.run(c.block(0x2000, 1, BlockExit::conditional, 0x200c)).run(deepest);
    for (int i = 0; i < depth; ++i) trace.run(returns);
    trace.run(main_ends);
    // 10 × 2 on the way in, 5 in the deepest, 10 × 1 on the way out.
    const auto found = c.of(trace);
    CHECK(found == ByContext{{"1", {2, 37, 0}},
                             {"1 2", {3, 35, 1}},
                             {"1 2 2", {3, 32, 1}},
                             {"1 2 2 2", {3, 29, 1}},
                             {"1 2 2 2 2", {26, 26, 8}}});
    CHECK(c.by_caller() ==
          ByContext{
              {"1", {0, 37, 0}}, {"2", {0, 35, 11}}, {"1 2", {0, 35, 1}}, {"2 2", {0, 32, 10}}});
}

TEST_CASE("contexts: a tail call is in its caller, and returns to that one's caller") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 1, call, 0x2000);
    const auto tail_calls = c.block(0x2000, 2, jump, 0x3000);
    const auto three = c.block(0x3000, 3, ret);
    const auto main_ends = c.block(0x1004, 4, plain);
    TestTrace trace;
    trace.from_thread_start().run({main_calls, tail_calls, three, main_ends});
    CHECK(c.of(trace) == ByContext{{"1", {5, 10, 0}}, {"1 2", {2, 5, 1}}, {"1 2 3", {3, 3, 1}}});
}

TEST_CASE("contexts: tail calls that go round do not go deeper") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 1, call, 0x2000);
    const auto two = c.block(0x2000, 1, jump, 0x3000);
    const auto three = c.block(0x3000, 1, jump, 0x4000);
    const auto four = c.block(0x4000, 1, jump, 0x5000);
    const auto five = c.block(0x5000, 1, jump, 0x2000);
    const auto last = c.block(0x5000, 1, ret);
    TestTrace trace;
    trace.from_thread_start().run(main_calls);
    for (int i = 0; i < 3; ++i) trace.run({two, three, four, five});
    trace.run({two, three, four, last, c.block(0x1004, 1, plain)});
    // 5 takes the place of 4, which is as far as tail calls go.
    CHECK(c.of(trace) == ByContext{{"1", {2, 18, 0}},
                                   {"1 2", {4, 16, 1}},
                                   {"1 2 3", {4, 12, 4}},
                                   {"1 2 3 4", {4, 4, 4}},
                                   {"1 2 3 5", {4, 4, 0}}});
}

TEST_CASE("contexts: a stub stands for the function that it jumps on to") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 1, call, 0x9000);
    const auto stub = c.stub(0x9000);
    const auto three = c.block(0x3000, 3, ret);
    const auto tail_calls = c.block(0x1004, 1, jump, 0x9000);
    TestTrace trace;
    trace.from_thread_start().run({main_calls, stub, three, tail_calls, stub, three});
    CHECK(c.of(trace) == ByContext{{"1", {2, 12, 0}}, {"1 3", {10, 10, 2}}});
    CHECK(c.by_caller().at("1 3") == Contexts::Counts{0, 10, 2});
}

TEST_CASE("contexts: what finds a function for a stub is beside that function") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 1, call, 0x9000);
    const auto stub = c.stub(0x9000);
    const auto pushes_number = c.block(0x900c, 2, jump, 0xa000);
    const auto to_resolver = c.stub(0xa000);
    const auto resolves = c.block(0xb000, 5, indirect);
    const auto three = c.block(0x3000, 3, ret);
    const auto main_ends = c.block(0x1004, 1, plain);
    TestTrace trace;
    trace.from_thread_start().run(
        {main_calls, stub, pushes_number, to_resolver, resolves, three, main_ends});
    CHECK(c.of(trace) == ByContext{{"1", {2, 16, 0}}, {"1 b", {11, 11, 1}}, {"1 3", {3, 3, 1}}});
}

TEST_CASE("contexts: longjmp and exceptions leave several functions at once") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 1, call, 0x2000);
    const auto two = c.block(0x2000, 1, call, 0x3000);
    const auto three_jumps = c.block(0x3000, 2, indirect);
    const auto three_returns = c.block(0x3000, 2, ret);
    const auto landing = c.block(0x1800, 4, call, 0x2000);
    const auto handler = c.block(0x1900, 1, plain);
    TestTrace trace;
    // A jump to the middle of a function that called; then a return to where nothing returns to.
    trace.from_thread_start().run({main_calls, two, three_jumps, landing, two, three_returns});
    trace.run({handler}).run(c.block(0x1904, 1, call, 0x3000)).run({three_returns});
    trace.run(c.block(0x1908, 1, plain));
    CHECK(c.of(trace) == ByContext{{"1", {1 + 4 + 1 + 1 + 1, 16, 0}},
                                   {"1 2", {2, 6, 2}},
                                   {"1 2 3", {4, 4, 2}},
                                   {"1 3", {2, 2, 1}}});
}

TEST_CASE("contexts: signal handlers have a stack of their own") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 1, call, 0x2000);
    const auto two = c.block(0x2000, 3, BlockExit::cut);
    const auto handler = c.block(0x5000, 2, call, 0x3000);
    const auto three = c.block(0x3000, 1, ret);
    const auto handler_returns = c.block(0x5008, 1, ret);
    const auto restorer = c.block(0x6000, 2, plain);
    const auto two_returns = c.block(0x200c, 1, ret);
    const auto main_ends = c.block(0x1004, 1, plain);
    TestTrace trace;
    trace.from_thread_start().run({main_calls, two}).interrupt(0x200c);
    trace.run({handler, three, handler_returns, restorer}).interrupt(0x6008);
    trace.run({two_returns, main_ends});
    CHECK(c.of(trace) == ByContext{{"1", {2, 6, 0}},
                                   {"1 2", {4, 4, 1}},
                                   {"signal: 5", {3, 4, 0}},
                                   {"signal: 5 3", {1, 1, 1}},
                                   {"signal: 6", {2, 2, 0}}});
    CHECK(c.by_caller().at("2").inclusive == 4);
}

TEST_CASE("contexts: a call that a signal interrupts has been made") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 1, call, 0x2000);
    const auto handler = c.block(0x5000, 2, plain);
    const auto two = c.block(0x2000, 3, ret);
    const auto main_ends = c.block(0x1004, 1, plain);
    TestTrace trace;
    trace.from_thread_start().run(main_calls).interrupt(0x2000);
    trace.run(handler).interrupt(0x5008).run({two, main_ends});
    CHECK(c.of(trace) == ByContext{{"1", {2, 5, 0}}, {"1 2", {3, 3, 1}}, {"signal: 5", {2, 2, 0}}});
}

TEST_CASE("contexts: stacks are changed, and found again") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 1, call, 0x7000);
    const auto to_other = c.block(0x7000, 2, ret);  // returns on another stack
    const auto other = c.block(0x4010, 3, call, 0x7000);
    const auto back = c.block(0x7000, 2, ret);
    const auto main_goes_on = c.block(0x1004, 4, plain);
    TestTrace trace;
    trace.from_thread_start().run({main_calls, to_other, other, back, main_goes_on});
    CHECK(c.of(trace) == ByContext{{"1", {5, 7, 0}},
                                   {"1 7", {2, 2, 1}},
                                   {"unknown: 4", {3, 5, 0}},
                                   {"unknown: 4 7", {2, 2, 1}}});
}

TEST_CASE("contexts: code without names is in the function that came to it") {
    Contexts c;
    const trace::ModuleId nameless{7};
    const auto main_calls = c.block(0x1000, 1, call, 0x8000);
    const auto first = c.program.block(0x8000, 2, BlockExit::conditional, 0x8010, 0, nameless);
    const auto second = c.program.block(0x8010, 2, ret, 0, 0, nameless);
    const auto main_ends = c.block(0x1004, 1, plain);
    TestTrace trace;
    trace.from_thread_start().run({main_calls, first, second, main_ends});
    CHECK(c.of(trace) == ByContext{{"1", {2, 6, 0}}, {"1 8", {4, 4, 1}}});
}

TEST_CASE("contexts: each sample is one observation, with its weight") {
    Contexts c;
    const auto main_calls = c.block(0x1000, 1, call, 0x2000);
    const auto two = c.block(0x2000, 3, ret);
    TestTrace first{0, 0}, second{1, 1};
    first.from_thread_start().run({main_calls, two});
    second.from_thread_start().run(main_calls);
    read(*c.profiler, first);
    read(*c.profiler, second);
    c.profiler->end_sample(first.start.sample, 2);
    c.profiler->end_sample(second.start.sample, 1);
    CHECK(c.yield() == ByContext{{"1", {3, 9, 0}}, {"1 2", {6, 6, 2}}});
    CHECK(c.contexts.totals.samples == 2);
    CHECK(c.contexts.totals.total_squares == 8 * 8 + 1);
    const auto& all = c.contexts.entries.at(0);
    CHECK(all.inclusive.samples == 2);
    CHECK(all.inclusive.squares == 8 * 8 + 1);
    const auto& callee = c.contexts.entries.at(1);
    CHECK(callee.inclusive.samples == 1);
    CHECK(callee.inclusive.squares == 6 * 6);
    CHECK(callee.inclusive.products == 6 * 8);
}

TEST_CASE("contexts: rare ones are in those that called them, and totals stay") {
    constexpr std::size_t most_nodes = 40;
    Contexts c{most_nodes};
    const auto main_calls = c.block(0x1000, 1, call, 0x2000);
    const auto often = c.block(0x2000, 100, ret);
    const auto main_goes_on = c.block(0x1004, 1, call, 0x3000);
    for (std::uint32_t sample = 0; sample < 20; ++sample) {
        TestTrace trace{sample, sample};
        trace.from_thread_start().run({main_calls, often, main_goes_on});
        // A path that never comes again.
        for (std::uint64_t i = 0; i < 10; ++i)
            trace.run(c.block((3 + 10 * sample + i) * 0x1000, 1, call));
        read(*c.profiler, trace);
        c.profiler->end_sample(trace.start.sample, 1);
    }
    const auto found = c.yield();
    CHECK(found.size() <= most_nodes + 10);
    CHECK(found.at("1") == Contexts::Counts{40, 20 * 112, 0});
    CHECK(found.at("1 2") == Contexts::Counts{2000, 2000, 20});
    std::uint64_t known = 0;
    for (const auto& e : c.contexts.entries) known += e.statistics.count;
    CHECK(c.contexts.totals.total == 20 * 112);
    CHECK(known + c.contexts.totals.unknown == 20 * 112);
    CHECK(c.contexts.totals.unknown > 0);
    CHECK(c.by_caller().at("1").inclusive == 20 * 112);
}

TEST_CASE("contexts of random walks add up, and segments say the same as blocks") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Random random{seed};
        RandomProgram program{random};
        EvenlySpacedFunctions functions{function_size};
        const auto& table = program.program.table;
        ContextProfiler of_blocks{table, functions, 200}, of_segments{table, functions, 200};
        trace::SegmentTable segments;
        std::uint64_t executed = 0;
        for (std::uint32_t sample = 0; sample < 3; ++sample) {
            const auto trace = random_trace(program, sample, sample, 300, random);
            const auto reader = of_blocks.open(trace.start);
            for (const auto& chunk : trace.chunks(table, 7, 50)) reader->digest(chunk);
            reader->finish(trace.end);
            trace::SegmentChunk chunk;
            std::vector<BlockId> open;
            const auto close = [&] {
                if (!open.empty()) chunk.segments.push_back(segments.publish(open));
                open.clear();
            };
            std::size_t values = 0, places = 0;
            for (const auto id : trace.all.blocks) {
                if (id == trace::discontinuity) {
                    close();
                    chunk.segments.push_back(trace::segment_discontinuity);
                    chunk.continuations.push_back({Address{trace.all.values[values++]},
                                                   trace.all.continuation_places[places++]});
                    continue;
                }
                values += table.at(id).slots.size();
                executed += table.at(id).instructions.size();
                open.push_back(id);
                if (random.chance(0.3)) close();
            }
            close();
            const auto segment_reader = of_segments.open(trace.start);
            segment_reader->digest(chunk, segments);
            segment_reader->finish(trace.end);
            of_blocks.end_sample(trace.start.sample, 1);
            of_segments.end_sample(trace.start.sample, 1);
        }
        Hotlists a, b;
        of_blocks.yield(a, Seen::samples);
        of_segments.yield(b, Seen::samples);
        const auto& contexts = *a.find<ContextHotlist>();
        const auto& callers = *a.find<CallerHotlist>();
        CHECK(contexts.totals.total == executed);
        std::uint64_t known = 0;
        std::map<std::pair<ContextRoot, std::vector<Location>>, std::uint64_t> of_callees, all;
        for (const auto& e : contexts.entries) {
            known += e.statistics.count;
            CHECK(e.statistics.count <= e.inclusive.count);
            all[{e.root, e.frames}] = e.inclusive.count;
            auto caller = e.frames;
            caller.pop_back();
            of_callees[{e.root, caller}] += e.inclusive.count;
            if (!caller.empty()) CHECK(all.count({e.root, caller}) == 1);  // callers come first
        }
        CHECK(known + contexts.totals.unknown == executed);
        for (const auto& e : contexts.entries)
            CHECK(of_callees[{e.root, e.frames}] + e.statistics.count <= e.inclusive.count);
        for (const auto& e : callers.entries) CHECK(e.inclusive.count <= executed);
        CHECK(callers.totals == b.find<CallerHotlist>()->totals);
        CHECK(callers.entries == b.find<CallerHotlist>()->entries);
    }
}

}  // namespace shadowprof::profile
