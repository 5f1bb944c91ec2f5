#include "profile/value/value.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "profile/common/context.h"
#include "test_program.h"

namespace shadowprof::profile {

namespace {

ValueHotlist values_of(const TestProgram& program, const TestTrace& trace,
                       ValueOptions options = {}) {
    const auto profiler = make_value_profiler(program.table, options);
    return *hotlists_of(*profiler, trace).find<ValueHotlist>();
}

const ValueHotlist::Entry& entry_at(const ValueHotlist& list, std::uint64_t address,
                                    std::uint8_t operand = 0,
                                    std::optional<Location> context = {}) {
    for (const auto& entry : list.entries)
        if (entry.location == at(address) && entry.operand_index == operand &&
            entry.context == context)
            return entry;
    FAIL("no entry");
    return list.entries.front();
}

std::uint64_t count_of(const ValueHotlist::Entry& entry, std::uint64_t value) {
    for (const auto& share : entry.top)
        if (share.value == value) return share.statistics.count;
    return 0;
}

}  // namespace

TEST_CASE(
    "all locations together list no more values than they may, the rarest fewer than others") {
    for (const auto estimator : {ValueEstimator::counting_sample, ValueEstimator::concise_sample,
                                 ValueEstimator::top_value_table}) {
        constexpr std::uint64_t rare = 200, values = 40, often = 50;
        ValueOptions options;
        options.estimator = estimator;
        options.most_listed = 2000;
        TestProgram program;
        TestTrace trace;
        const auto hot = program.block(0x100, 1, BlockExit::jump, 0x100, 1);
        for (std::uint64_t i = 0; i < values * often; ++i) trace.run(hot, {i % values});
        for (std::uint64_t n = 1; n <= rare; ++n) {
            const auto address = 0x100 + 0x100 * n;
            const auto block = program.block(address, 1, BlockExit::jump, address, 1);
            for (std::uint64_t i = 0; i < values; ++i) trace.run(block, {i});
        }
        const auto list = values_of(program, trace, options);
        std::size_t listed = 0;
        for (const auto& entry : list.entries) listed += entry.top.size();
        CHECK(list.entries.size() == rare + 1);
        CHECK(listed <= options.most_listed);
        CHECK(list.totals.total == values * often + rare * values);
        const auto& first = entry_at(list, 0x100);
        CHECK(first.executions.total == values * often);
        // This one forgets values that are as frequent as each other by itself.
        if (estimator != ValueEstimator::top_value_table) CHECK(first.top.size() == values);
        CHECK(entry_at(list, 0x200).executions.total == values);
    }
}

TEST_CASE("values are counted where they were seen, operand by operand") {
    TestProgram program;
    const auto block = program.block(0x100, 2, BlockExit::jump, 0x100, 2);
    TestTrace trace;
    // Operand 0 sees 7 nine times of ten; operand 1 sees the round.
    for (std::uint64_t i = 0; i < 10; ++i) trace.run(block, {i == 4 ? 8u : 7u, 100 + i});
    const auto list = values_of(program, trace);
    const auto& first = entry_at(list, 0x100, 0);
    CHECK(first.executions.total == 10);
    CHECK(first.probability_inverse == 1);
    REQUIRE(first.top.size() == 2);
    CHECK(first.top[0].value == 7);
    CHECK(first.top[0].statistics.count == 9);
    CHECK(first.top[1].statistics.count == 1);
    CHECK(first.executions.unknown == 0);
    CHECK_FALSE(first.stride);
    const auto& second = entry_at(list, 0x100, 1);
    CHECK(second.top.size() == 10);
    REQUIRE(second.stride);
    CHECK(second.stride->step == 1);
    CHECK(second.stride->share == 1);
    CHECK(list.totals.total == 20);
    CHECK(first.kind == ValueKind::register_);
}

TEST_CASE("an instruction is one location, whichever block it was reached in") {
    TestProgram program;
    // The second block begins at the second instruction of the first; both have a slot there.
    trace::Block whole;
    whole.exit = BlockExit::jump;
    whole.start = Address{0x100};
    whole.place = at(0x100);
    for (std::uint64_t i = 0; i < 2; ++i) {
        decoder::Instruction instruction;
        instruction.address = Address{0x100 + 4 * i};
        instruction.length = 4;
        whole.instructions.push_back(instruction);
    }
    whole.slots = {{trace::Capture::destination_values, 1, 0, 64}};
    const auto first = program.table.publish(std::move(whole)).id;
    const auto second = program.block(0x104, 1, BlockExit::jump, 0, 1);
    TestTrace trace;
    trace.run(first, {5}).run(second, {5}).run(second, {6});
    const auto list = values_of(program, trace);
    CHECK(list.entries.size() == 1);
    CHECK(count_of(entry_at(list, 0x104), 5) == 2);
}

TEST_CASE("values that nobody asked for are passed over") {
    TestProgram program;
    trace::Block block;
    block.exit = BlockExit::jump;
    block.start = Address{0x100};
    block.place = at(0x100);
    block.instructions.resize(1);
    block.instructions[0].address = block.start;
    block.slots = {{trace::Capture::memory_addresses, 0, 1, 64},
                   {trace::Capture::destination_values, 0, 0, 64},
                   {trace::Capture::loaded_values, 0, 1, 64}};
    const auto id = program.table.publish(std::move(block)).id;
    TestTrace trace;
    trace.run(id, {0xaddd, 3, 500}).run(id, {0xaddd, 3, 510});
    const auto destinations = values_of(program, trace);
    CHECK(destinations.entries.size() == 1);
    CHECK(count_of(destinations.entries[0], 3) == 2);
    ValueOptions options;
    options.captures =
        trace::CapturePlan{trace::Capture::destination_values} | trace::Capture::memory_addresses;
    CHECK(make_value_profiler(program.table, options)->captures() == options.captures);
    const auto both = values_of(program, trace, options);
    CHECK(both.entries.size() == 2);
    CHECK(count_of(entry_at(both, 0x100, 1), 0xaddd) == 2);
}

TEST_CASE("discontinuities have no value of the program") {
    TestProgram program;
    const auto block = program.block(0x100, 1, BlockExit::jump, 0x100, 1);
    TestTrace trace;
    trace.run(block, {1}).interrupt(0x100).interrupt(0x200).run(block, {1}).run(block, {1});
    const auto list = values_of(program, trace);
    CHECK(count_of(entry_at(list, 0x100), 1) == 3);
    CHECK(list.totals.total == 3);
}

TEST_CASE("strides") {
    const auto stride_of = [](const std::vector<std::uint64_t>& values, std::uint8_t bits = 64) {
        TestProgram program;
        const auto block = program.block(0x100, 1, BlockExit::jump, 0x100, 1, program_module, bits);
        TestTrace trace;
        for (const auto value : values) trace.run(block, {value});
        return entry_at(values_of(program, trace), 0x100).stride;
    };
    const auto steps = [](std::uint64_t step, int n, std::uint64_t mask = ~std::uint64_t{0}) {
        std::vector<std::uint64_t> values;
        for (int i = 0; i < n; ++i) values.push_back((static_cast<std::uint64_t>(i) * step) & mask);
        return values;
    };
    CHECK(stride_of(steps(24, 100))->step == 24);
    CHECK(stride_of(steps(~std::uint64_t{0}, 100))->step == -1);
    // In its own width a byte goes round: 200, 240, 24 is + 40.
    CHECK(stride_of(steps(40, 100, 0xff), 8)->step == 40);
    CHECK(stride_of(steps(40, 100, 0xff), 8)->share == 1);
    CHECK(stride_of(steps(0xfffe, 100, 0xffff), 16)->step == -2);
    CHECK(stride_of(steps(0xfffffff0, 100, 0xffffffff), 32)->step == -16);
    CHECK_FALSE(stride_of(steps(0, 100)));  // constant
    CHECK_FALSE(stride_of({5}));
    // Nine steps of 8 and one jump back, again and again: a share of 0.9.
    std::vector<std::uint64_t> rows;
    for (int row = 0; row < 100; ++row)
        for (std::uint64_t i = 0; i < 10; ++i) rows.push_back(8 * i);
    REQUIRE(stride_of(rows));
    CHECK(stride_of(rows)->step == 8);
    CHECK(stride_of(rows)->share == doctest::Approx(0.9).epsilon(0.002));
    // Three of four is not enough.
    std::vector<std::uint64_t> quarters;
    for (int row = 0; row < 100; ++row)
        for (std::uint64_t i = 0; i < 4; ++i) quarters.push_back(8 * i);
    CHECK_FALSE(stride_of(quarters));
    Random random{5};
    std::vector<std::uint64_t> noise;
    for (int i = 0; i < 1000; ++i) noise.push_back(random());
    CHECK_FALSE(stride_of(noise));
}

TEST_CASE("no step leads from one Trace to another") {
    TestProgram program;
    const auto block = program.block(0x100, 1, BlockExit::jump, 0x100, 1);
    const auto profiler = make_value_profiler(program.table, {});
    for (std::uint32_t i = 0; i < 10; ++i) {
        TestTrace trace{i, i};
        trace.run(block, {1000 * i}).run(block, {1000 * i + 1});
        read(*profiler, trace);
        profiler->end_sample(trace.start.sample, 1);
    }
    Hotlists lists;
    profiler->yield(lists, Seen::samples);
    const auto& entry = entry_at(*lists.find<ValueHotlist>(), 0x100);
    REQUIRE(entry.stride);
    CHECK(entry.stride->step == 1);
    CHECK(entry.stride->share == 1);
    CHECK(entry.executions.samples == 10);
    CHECK(entry.executions.total == 20);
}

TEST_CASE("statistics are by sample, also where samples are read in turn") {
    TestProgram program;
    const auto block = program.block(0x100, 1, BlockExit::jump, 0x100, 1);
    // Samples see 7 three times of 4, once of 2, and 3 times of 3. The first two alternate.
    TestTrace a1{0, 0}, a2{0, 0}, b1{1, 1}, b2{1, 1}, c{2, 2};
    a1.run(block, {7}).run(block, {7});
    b1.run(block, {9});
    a2.run(block, {7}).run(block, {1});
    b2.run(block, {7});
    for (int i = 0; i < 3; ++i) c.run(block, {7});
    Statistics seven;
    seven.add_sample(3, 4);
    seven.add_sample(1, 2);
    seven.add_sample(3, 3);
    Totals executions;
    executions.add_sample(4);
    executions.add_sample(2);
    executions.add_sample(3);

    const auto profiler = make_value_profiler(program.table, {});
    {
        const auto a = profiler->open(a1.start);
        const auto b = profiler->open(b1.start);
        a->digest(a1.all);
        b->digest(b1.all);
        a->digest(a2.all);
        b->digest(b2.all);
        a->finish(a1.end);
        b->finish(b1.end);
    }
    profiler->end_sample(trace::SampleId{1}, 1);
    profiler->end_sample(trace::SampleId{0}, 1);
    read(*profiler, c);
    profiler->end_sample(trace::SampleId{2}, 1);
    Hotlists lists;
    profiler->yield(lists, Seen::samples);
    const auto& entry = entry_at(*lists.find<ValueHotlist>(), 0x100);
    CHECK(entry.executions == executions);
    CHECK(entry.top.at(0).value == 7);
    CHECK(entry.top.at(0).statistics == seven);
    CHECK(lists.find<ValueHotlist>()->totals == executions);
}

TEST_CASE("samples that are read in turn all the time are what they are one after the other") {
    TestProgram program;
    const auto block = program.block(0x100, 1, BlockExit::jump, 0x100, 1);
    constexpr std::uint64_t values = 150, turns = 40;
    const auto trace_of = [&](std::uint32_t sample, std::uint64_t turn) {
        TestTrace trace{sample, sample};
        for (std::uint64_t value = 0; value < values; ++value)
            for (std::uint64_t i = 0; i <= (value + turn) % (2 + sample); ++i)
                trace.run(block, {1000 * value});
        return trace;
    };
    std::vector<ValueHotlist> lists;
    for (const bool in_turn : {false, true}) {
        const auto profiler = make_value_profiler(program.table, {});
        std::array readers{profiler->open(TestTrace{0, 0}.start),
                           profiler->open(TestTrace{1, 1}.start)};
        for (std::uint64_t n = 0; n < 2 * turns; ++n) {
            const auto sample = static_cast<std::uint32_t>(in_turn ? n % 2 : n / turns);
            readers[sample]->digest(trace_of(sample, in_turn ? n / 2 : n % turns).all);
        }
        for (std::uint32_t sample = 0; sample < 2; ++sample)
            profiler->end_sample(trace::SampleId{sample}, 1);
        Hotlists hotlists;
        profiler->yield(hotlists, Seen::samples);
        lists.push_back(std::move(*hotlists.find<ValueHotlist>()));
    }
    CHECK(lists[0].totals == lists[1].totals);
    const auto &one = entry_at(lists[0], 0x100), &other = entry_at(lists[1], 0x100);
    CHECK(one.executions == other.executions);
    REQUIRE(one.top.size() == values);
    REQUIRE(other.top.size() == values);
    for (std::size_t n = 0; n < values; ++n) {
        CHECK(one.top[n].value == other.top[n].value);
        CHECK(one.top[n].statistics == other.top[n].statistics);
        CHECK(one.top[n].statistics.samples == 2);
    }
}

TEST_CASE("a value with a 20 % share among thousands that never come again") {
    TestProgram program;
    const auto block = program.block(0x100, 1, BlockExit::jump, 0x100, 1);
    Random random{9};
    const auto profiler = make_value_profiler(program.table, {});
    std::uint64_t hot = 0;
    for (std::uint32_t sample = 0; sample < 30; ++sample) {
        TestTrace trace{sample, sample};
        for (int i = 0; i < 2000; ++i) {
            const bool is_hot = random.chance(0.2);
            hot += is_hot;
            trace.run(block, {is_hot ? 42 : random()});
        }
        read(*profiler, trace);
        profiler->end_sample(trace.start.sample, 1);
    }
    Hotlists lists;
    profiler->yield(lists, Seen::samples);
    const auto& entry = entry_at(*lists.find<ValueHotlist>(), 0x100);
    CHECK(entry.probability_inverse > 100);
    REQUIRE(entry.top.size() == 1);  // values below the resolution are not told
    CHECK(entry.top[0].value == 42);
    CHECK(std::abs(static_cast<double>(entry.top[0].statistics.count) - static_cast<double>(hot)) <
          5.0 * static_cast<double>(entry.probability_inverse));
    CHECK(entry.top[0].statistics.count + entry.executions.unknown == entry.executions.total);
    const auto estimate = estimate_share(entry.top[0].statistics, entry.executions);
    CHECK(estimate.low < 0.2);
    CHECK(estimate.high > 0.2);
    CHECK(estimate.high - estimate.low < 0.05);
}

namespace {

// f at 0x2000 returns at once; main calls it from 0x1000 and from 0x1008.
struct TwoCallers {
    TestProgram program;
    BlockId first = program.block(0x1000, 2, BlockExit::call, 0x2000);
    BlockId second = program.block(0x1008, 2, BlockExit::call, 0x2000);
    BlockId f = program.block(0x2000, 2, BlockExit::return_, 0, 1);
    BlockId again = program.block(0x1010, 1, BlockExit::jump, 0x1000);
    Location after_first = at(0x1008);
    Location after_second = at(0x1010);
};

ValueOptions with_context() {
    ValueOptions options;
    options.by.return_address = true;
    return options;
}

}  // namespace

TEST_CASE("values told apart by return address") {
    TwoCallers two;
    TestTrace trace;
    for (std::uint64_t i = 0; i < 50; ++i)
        trace.run(two.first).run(two.f, {2}).run(two.second).run(two.f, {i}).run(two.again);
    const auto list = values_of(two.program, trace, with_context());
    CHECK(list.entries.size() == 2);
    CHECK(entry_at(list, 0x2000, 0, two.after_first).top.size() == 1);
    CHECK(count_of(entry_at(list, 0x2000, 0, two.after_first), 2) == 50);
    CHECK(entry_at(list, 0x2000, 0, two.after_second).top.size() == 50);
    // Without contexts it is one location that sees 2 half of the time.
    const auto without = values_of(two.program, trace);
    CHECK(without.entries.size() == 1);
    CHECK(count_of(entry_at(without, 0x2000), 2) == 51);
}

TEST_CASE("the context of a Trace that begins in a call comes from the unwound stack") {
    TwoCallers two;
    TestTrace trace;
    trace.start.call_stack = {at(0x2004), two.after_second, at(0x9000)};
    trace.run(two.f, {1}).run(two.again).run(two.first).run(two.f, {1});
    const auto list = values_of(two.program, trace, with_context());
    CHECK(count_of(entry_at(list, 0x2000, 0, two.after_second), 1) == 1);
    CHECK(count_of(entry_at(list, 0x2000, 0, two.after_first), 1) == 1);

    TestTrace unknown;
    unknown.run(two.f, {1}).run(two.again).run(two.first).run(two.f, {1});
    const auto other = values_of(two.program, unknown, with_context());
    CHECK(count_of(entry_at(other, 0x2000), 1) == 1);
    CHECK(count_of(entry_at(other, 0x2000, 0, two.after_first), 1) == 1);
}

TEST_CASE("a signal handler has no known context, and leaves that of what it interrupts") {
    TestProgram program;
    const auto call = program.block(0x1000, 1, BlockExit::call, 0x2000);
    const auto f = program.block(0x2000, 1, BlockExit::call, 0x3000, 1);
    const auto g = program.block(0x3000, 1, BlockExit::return_, 0, 1);
    const auto handler = program.block(0x5000, 1, BlockExit::return_, 0, 1);
    const auto restorer = program.block(0x6000, 1, BlockExit::system_call);
    const auto f_after = program.block(0x2004, 1, BlockExit::return_, 0, 1);
    const auto main_after = program.block(0x1004, 1, BlockExit::jump, 0x1000, 1);
    TestTrace trace;
    trace.run(call)
        .run(f, {1})
        .interrupt(0x3000)
        .run(handler, {1})
        .run(restorer)
        .interrupt(0x6004)
        .run(g, {1})  // whose caller was pushed before the signal came in between
        .run(f_after, {1})
        .run(main_after, {1});
    const auto list = values_of(program, trace, with_context());
    CHECK(entry_at(list, 0x2000, 0, at(0x1004)).executions.total == 1);
    CHECK(entry_at(list, 0x5000).executions.total == 1);                 // unknown
    CHECK(entry_at(list, 0x2004, 0, at(0x1004)).executions.total == 1);  // known again
    CHECK(entry_at(list, 0x1004).executions.total == 1);  // main's caller was never known
}

TEST_CASE("returns that skip frames drop them") {
    TestProgram program;
    const auto& call_b = program.table.at(program.block(0x1000, 1, BlockExit::call, 0x2000));
    const auto& call_c = program.table.at(program.block(0x2000, 1, BlockExit::call, 0x3000));
    const auto& ret = program.table.at(program.block(0x3000, 1, BlockExit::return_));
    const auto& after = program.table.at(program.block(0x1004, 1, BlockExit::return_));
    const auto& elsewhere = program.table.at(program.block(0x7000, 1, BlockExit::return_));
    ContextTable contexts;
    trace::TraceStart start;
    start.call_stack = {at(0x1000), at(0x8000)};
    ContextStack stack{contexts, start};
    CHECK(stack.current() == contexts.intern(at(0x8000)));
    stack.pass(call_b, call_c.place);
    CHECK(stack.current() == contexts.intern(at(0x1004)));
    stack.pass(call_c, ret.place);
    CHECK(stack.current() == contexts.intern(at(0x2004)));
    stack.pass(ret, after.place);  // as longjmp does
    CHECK(stack.current() == contexts.intern(at(0x8000)));
    stack.pass(after, elsewhere.place);  // nobody called from there
    CHECK(stack.current() == ContextId::unknown);
}

TEST_CASE("recursion deeper than the stack of contexts") {
    TestProgram program;
    const auto& call = program.table.at(program.block(0x1000, 1, BlockExit::call, 0x1000));
    ContextTable contexts;
    ContextStack stack{contexts, {}};
    for (std::size_t i = 0; i < 3 * ContextStack::most_frames; ++i) stack.pass(call, call.place);
    CHECK(stack.current() == contexts.intern(at(0x1004)));
}

TEST_CASE("executions are counted exactly where values of some of them are read") {
    TestProgram program;
    const auto read_and_counted = program.block(0x100, 1, BlockExit::jump, 0x100, 1);
    const auto only_counted = program.block(0x200, 1, BlockExit::jump, 0x100, 2);
    const auto profiler = make_value_profiler(program.table, {});
    // Two bursts of 10 and 20 executions; 7 three times of four in the second.
    for (std::uint32_t burst = 0; burst < 2; ++burst) {
        TestTrace trace{burst + 1, burst + 1};
        trace.start.contents = trace::Contents::values;
        for (std::uint64_t i = 0; i < 10 * (burst + 1); ++i)
            trace.run(read_and_counted, {i % 4 == 0 && burst == 1 ? 8u : 7u});
        read(*profiler, trace);
        profiler->end_sample(trace.start.sample, 1);
    }
    Counts counts;
    counts.passes = {{read_and_counted, read_and_counted, 2000}, {only_counted, only_counted, 40}};
    profiler->count(trace::SampleId{0}, counts);
    counts.passes = {{read_and_counted, only_counted, 990}};
    counts.exits = {{read_and_counted, Address{0x100}, at(0x100), 10}};
    profiler->count(trace::SampleId{0}, counts);
    Hotlists lists;
    profiler->yield(lists, Seen::everything);
    const auto& list = *lists.find<ValueHotlist>();

    REQUIRE(list.entries.size() == 1);
    const auto& entry = entry_at(list, 0x100);
    CHECK(entry.all_executions() == 3000);
    CHECK(entry.executions.total == 30);
    CHECK(entry.executions.samples == 2);
    CHECK_FALSE(entry.executions.exhaustive);
    CHECK(count_of(entry, 7) == 25);
    CHECK(entry.estimated(count_of(entry, 7)) == 2500);
    CHECK(entry.estimated(count_of(entry, 8)) == 500);
    CHECK(list.totals.total == 30);
    CHECK_FALSE(list.totals.exhaustive);
    CHECK(list.all_executions().total == 3000 + 2 * 40);
}

TEST_CASE("a hotlist of all values of all executions is exhaustive, also if these were counted") {
    TestProgram program;
    const auto block = program.block(0x100, 1, BlockExit::jump, 0x100, 1);
    for (const std::uint64_t executed : {6, 7}) {
        CAPTURE(executed);
        const auto profiler = make_value_profiler(program.table, {});
        TestTrace trace;
        trace.start.contents = trace::Contents::values;
        for (std::uint64_t i = 0; i < 6; ++i) trace.run(block, {i / 3});
        read(*profiler, trace);
        profiler->end_sample(trace.start.sample, 1);
        Counts counts;
        counts.passes = {{block, block, executed}};
        profiler->count(trace.start.sample, counts);
        Hotlists lists;
        profiler->yield(lists, Seen::everything);
        const auto& entry = entry_at(*lists.find<ValueHotlist>(), 0x100);
        CHECK(lists.find<ValueHotlist>()->totals.exhaustive == (executed == 6));
        CHECK(entry.executions.exhaustive == (executed == 6));
        CHECK(entry.all_executions() == executed);
    }
}

TEST_CASE("contexts divide counted executions as they divide those that were read") {
    TestProgram program;
    const auto call = program.block(0x100, 1, BlockExit::call, 0x200);
    const auto callee = program.block(0x200, 1, BlockExit::return_, 0, 1);
    const auto second_call = program.block(0x104, 1, BlockExit::call, 0x200);
    const auto end = program.block(0x108, 1, BlockExit::jump, 0x100);
    ValueOptions options;
    options.by.return_address = true;
    const auto profiler = make_value_profiler(program.table, options);
    TestTrace trace;
    trace.start.contents = trace::Contents::values;
    trace.run(call).run(callee, {1}).run(second_call).run(callee, {2}).run(end).run(call);
    trace.run(callee, {1});
    read(*profiler, trace);
    profiler->end_sample(trace.start.sample, 1);
    Counts counts;
    counts.passes = {{callee, second_call, 301}};
    profiler->count(trace.start.sample, counts);
    Hotlists lists;
    profiler->yield(lists, Seen::everything);
    CHECK(entry_at(*lists.find<ValueHotlist>(), 0x200, 0, at(0x104)).all_executions() == 200);
    CHECK(entry_at(*lists.find<ValueHotlist>(), 0x200, 0, at(0x108)).all_executions() == 100);
    CHECK(lists.find<ValueHotlist>()->all_executions().total == 301);
}

TEST_CASE("values are told apart by what is so of the thread") {
    TestProgram program;
    const auto publish = [&](std::uint64_t start, BlockExit exit, std::vector<trace::Slot> slots) {
        trace::Block block;
        block.exit = exit;
        block.start = Address{start};
        block.place = at(start);
        block.instructions.emplace_back().address = block.start;
        block.instructions.back().length = TestProgram::instruction_length;
        block.slots = std::move(slots);
        return program.table.publish(std::move(block)).id;
    };
    const trace::Slot error{trace::Capture::error_before, 0, 0, 64};
    const auto work =
        publish(0x100, BlockExit::jump, {error, {trace::Capture::destination_values, 0, 0, 64}});
    const auto call = publish(0x200, BlockExit::system_call,
                              {{trace::Capture::register_before, 0, decoder::rax, 64}, error});
    TestTrace trace;
    trace.start.thread = "worker";
    trace.start.state = {7, 3, -1};
    trace.run(work, {0, 5}).run(call, {39, 1}).run(work, {12, 6}).run(call, {1, 1});
    trace.run(work, {1, 6}).stop_before(0x100);
    const auto found = [&](StateKeys by) {
        ValueOptions options;
        options.by = by;
        options.name_of_call = [](std::int32_t n) { return std::to_string(n); };
        std::map<std::string, std::uint64_t> values;
        for (const auto& e : values_of(program, trace, options).entries)
            for (const auto& top : e.top)
                values[state_text(e.state) + ": " + std::to_string(top.value)] =
                    top.statistics.count;
        return values;
    };
    using Values = std::map<std::string, std::uint64_t>;
    CHECK(found({}) == Values{{": 5", 1}, {": 6", 2}});
    CHECK(found({.thread = true}) == Values{{"worker: 5", 1}, {"worker: 6", 2}});
    CHECK(found({.tid = true, .processor = true, .scheduling = true}) ==
          Values{{"thread 7, processor 3: 5", 1}, {"thread 7, processor 3: 6", 2}});
    CHECK(found({.system_call = true}) ==
          Values{{": 5", 1}, {"after 39: 6", 1}, {"after 1: 6", 1}});
    CHECK(found({.error = true}) == Values{{": 5", 1}, {"errno EAGAIN: 6", 1}, {"errno 0: 6", 1}});
    CHECK(found({.signals = true, .locks = true}) == Values{{": 5", 1}, {": 6", 2}});
    trace.start.signals.emplace();
    CHECK(found({.signals = true}) ==
          Values{{"signal handlers 0: 5", 1}, {"signal handlers 0: 6", 2}});
}

}  // namespace shadowprof::profile
