#include "profile/latency/latency.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "base/random.h"
#include "decoder/decoder.h"
#include "profile/common/address_origin.h"
#include "profile/latency/cache_model.h"
#include "profile/latency/residence.h"
#include "test_program.h"

using namespace shadowprof;
using namespace shadowprof::profile;

namespace {

using decoder::Instruction;
using decoder::Operand;
using decoder::OperandKind;

decoder::Register general(std::uint8_t number) {
    return {decoder::RegisterKind::general, number, false, 64};
}

Operand reg(std::uint8_t number, bool reads, bool writes) {
    Operand operand;
    operand.kind = OperandKind::reg;
    operand.reg = general(number);
    operand.reads = reads;
    operand.writes = writes;
    operand.bits = 64;
    return operand;
}

Operand memory(std::uint8_t base, bool reads) {
    Operand operand;
    operand.kind = OperandKind::memory;
    operand.memory.base = general(base);
    operand.reads = reads;
    operand.writes = !reads;
    operand.bits = 64;
    return operand;
}

// mov `to`, ["base"]
Instruction load(std::uint8_t to, std::uint8_t base) {
    Instruction instruction;
    instruction.set_operands(decoder::shared(std::array{reg(to, false, true), memory(base, true)}));
    return instruction;
}

Instruction add(std::uint8_t to, std::uint8_t from) {
    Instruction instruction;
    instruction.set_operands(
        decoder::shared(std::array{reg(to, true, true), reg(from, true, false)}));
    return instruction;
}

struct Program {
    trace::BlockTable table;

    BlockId block(std::uint64_t start, std::vector<Instruction> instructions) {
        trace::Block block;
        block.start = Address{start};
        block.place = at(start);
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            instructions[i].address = Address{start + 4 * i};
            instructions[i].length = 4;
        }
        block.instructions = std::move(instructions);
        block.accesses = trace::slots_of(block.instructions, trace::Capture::memory_addresses);
        return table.publish(std::move(block)).id;
    }
};

// Of caches of 4, 16 and 64 KB.
machine::LatencyScale scale() {
    machine::LatencyScale scale;
    scale.clock_is_usable = true;
    scale.nanoseconds_per_tick = 0.5;
    scale.overhead_ticks = 40;
    scale.limits_ns = {5, 20, 60};
    scale.longest_ns = 1000;
    scale.caches.levels = {{{4096, 4}, {16384, 8}, {65536, 16}}};
    return scale;
}

trace::TraceStart start_of(trace::Contents contents, std::uint32_t sample, std::uint32_t trace) {
    trace::TraceStart start;
    start.contents = contents;
    start.sample = trace::SampleId{sample};
    start.trace = trace::TraceId{trace};
    return start;
}

LatencyHotlist yielded(Profiler& profiler) {
    Hotlists lists;
    profiler.yield(lists, Seen::samples);
    return *lists.find<LatencyHotlist>();
}

}  // namespace

TEST_CASE("what timed loads waited, without what timing takes") {
    Program program;
    const auto id =
        program.block(0x100, {load(decoder::rax, decoder::rbx), load(decoder::rcx, decoder::rdx)});
    const auto profiler = make_latency_profiler(program.table, scale());
    for (std::uint32_t sample = 0; sample < 2; ++sample) {
        const auto start = start_of(trace::Contents::timings, sample, sample);
        trace::TraceChunk chunk;
        chunk.timed_loads = {{id, 0, 40, 0}, {id, 0, 50, 0}, {id, 1, 240, 0}, {id, 1, 9'000, 0}};
        profiler->open(start)->digest(chunk);
        profiler->end_sample(start.sample, 1);
    }
    const auto list = yielded(*profiler);
    REQUIRE(list.entries.size() == 2);
    const auto& slow = list.entries[0];
    CHECK(slow.location == at(0x104));
    CHECK(slow.timed == 2);
    CHECK(slow.disturbed == 2);
    CHECK(slow.picoseconds == 200'000);
    CHECK(slow.statistics.count == 200);
    CHECK(slow.by_time[3] == 2);
    CHECK(std::abs(latency_quantile(slow.histogram, 0.5) - 100) < 15);
    const auto& fast = list.entries[1];
    CHECK(fast.picoseconds == 10'000);
    CHECK(fast.by_time[0] + fast.by_time[1] == 4);
    CHECK(list.totals.total == slow.statistics.count + fast.statistics.count);
    CHECK(list.totals.samples == 2);
}

TEST_CASE("what timed loads waited counts for all loads that their sample stands for") {
    Program program;
    const auto slow = program.block(0x100, {load(decoder::rax, decoder::rbx)});
    const auto fast = program.block(0x200, {load(decoder::rax, decoder::rbx)});
    const auto profiler = make_latency_profiler(program.table, scale());
    // Of the slow ones more were timed; the other sample has ten times as many, and weighs twice.
    const auto sample = [&](std::uint32_t number, trace::BlockId block, std::uint64_t executed,
                            std::uint64_t weight, std::size_t timed, std::uint32_t ticks) {
        const auto start = start_of(trace::Contents::timings, number, number);
        trace::TraceChunk chunk;
        chunk.timed_loads.assign(timed, {block, 0, ticks, 0});
        profiler->open(start)->digest(chunk);
        Counts counts;
        counts.exits.push_back({block, Address{0x300}, at(0x300), executed});
        profiler->count(start.sample, counts);
        profiler->end_sample(start.sample, weight);
    };
    sample(0, slow, 1000, 1, 10, 240);
    sample(1, fast, 10'000, 2, 2, 80);
    const auto list = yielded(*profiler);
    REQUIRE(list.entries.size() == 2);
    CHECK(list.entries[0].location == at(0x200));
    CHECK(list.entries[0].statistics.count == 20'000 * 20);
    CHECK(list.entries[0].picoseconds == 40'000);
    CHECK(list.entries[1].statistics.count == 1000 * 100);
    CHECK(list.totals.total == 500'000);
    CHECK(list.totals.samples == 2);
}

TEST_CASE("executions are counted, of loads and not of stores") {
    Program program;
    Instruction store;
    store.set_operands(
        decoder::shared(std::array{memory(decoder::rbx, false), reg(decoder::rax, true, false)}));
    const auto id = program.block(0x100, {load(decoder::rax, decoder::rbx), store});
    const auto profiler = make_latency_profiler(program.table, scale());
    Counts counts;
    counts.exits.push_back({id, Address{0x200}, at(0x200), 70});
    profiler->count(trace::SampleId{0}, counts);
    const auto list = yielded(*profiler);
    REQUIRE(list.entries.size() == 1);
    CHECK(list.entries[0].loads == 70);
    CHECK(list.loads == 70);
}

TEST_CASE("a cache holds what was touched since, and no more") {
    CacheModel model{scale().caches};
    model.begin_stretch();
    const auto sweep = [&](std::uint64_t bytes) {
        std::array<std::uint64_t, machine::memory_levels> hits{};
        std::uint64_t first = 0;
        for (std::uint64_t address = 0; address < bytes; address += 64) {
            const auto outcome = model.access(address);
            ++hits[static_cast<std::size_t>(outcome.level)];
            first += outcome.first;
        }
        return std::pair(hits, first);
    };
    const std::pair<std::uint64_t, std::size_t> cases[] = {{4096, 0}, {16384, 1}, {65536, 2}};
    for (const auto& [bytes, level] : cases) {
        model.begin_stretch();
        CHECK(sweep(bytes).second == bytes / 64);
        const auto [hits, first] = sweep(bytes);
        CHECK(first == 0);
        CHECK(hits[level] == bytes / 64);
    }
    model.begin_stretch();
    sweep(1 << 20);
    CHECK(sweep(1 << 20).first[3] == (1 << 20) / 64);
}

TEST_CASE("addresses that come from loads") {
    Program program;
    // mov rax, [rax]; mov rcx, [rax]; add rdx, rcx; mov rsi, [rdx]; mov rdi, [rbx]
    const auto id =
        program.block(0x100, {load(decoder::rax, decoder::rax), load(decoder::rcx, decoder::rax),
                              add(decoder::rdx, decoder::rcx), load(decoder::rsi, decoder::rdx),
                              load(decoder::rdi, decoder::rbx)});
    const BlockOrigins block{program.table.at(id), program.table.at(id).accesses};
    RegisterOrigins registers;
    const auto number = [](std::size_t access) { return static_cast<std::uint32_t>(access) + 10; };
    CHECK(registers.of_access(block, 0, number) == RegisterOrigins::none);
    CHECK(registers.of_access(block, 1, number) == 10);
    CHECK(registers.of_access(block, 2, number) == 11);
    CHECK(registers.of_access(block, 3, number) == RegisterOrigins::none);
    registers.pass(block, number);
    CHECK(registers.of_access(block, 0, number) == 10);
    CHECK(registers.of_access(block, 3, number) == RegisterOrigins::none);
}

namespace {

// A load that goes around among so many lines at random, looked at in stretches.
LatencyHotlist::Entry wandering(std::uint64_t lines, unsigned stretches, unsigned length) {
    Program program;
    const auto id = program.block(0x100, {load(decoder::rax, decoder::rbx)});
    const auto profiler = make_latency_profiler(program.table, scale());
    Random random{7};
    for (std::uint32_t n = 0; n < stretches; ++n) {
        trace::TraceChunk chunk;
        for (unsigned i = 0; i < length; ++i) {
            chunk.blocks.push_back(id);
            chunk.values.push_back(random.below(lines) * 64);
        }
        profiler->open(start_of(trace::Contents::accesses, n, n))->digest(chunk);
    }
    return yielded(*profiler).entries.at(0);
}

}  // namespace

TEST_CASE("where lines are that were not touched before in their stretch") {
    // In stretches too short to see anything twice.
    const auto near = wandering(16 * 1024 / 64 / 2, 200, 8);
    CHECK(near.by_model[1] + near.by_model[0] > near.modelled * 95 / 100);
    const auto far = wandering(16u << 10, 200, 200);
    CHECK(far.by_model[3] > far.modelled * 95 / 100);
    const auto middle = wandering(512, 200, 20);
    CHECK(middle.by_model[2] > middle.modelled * 80 / 100);
    // Of one stretch alone nothing is known.
    const auto once = wandering(16u << 10, 1, 100);
    CHECK(once.by_model[3] == 0);
}

TEST_CASE("patterns of addresses") {
    CHECK(wandering(1, 1, 100).pattern == AddressPattern::constant);
    CHECK(wandering(1000, 1, 100).pattern == AddressPattern::random);
    CHECK(wandering(1000, 1, 3).pattern == AddressPattern::unknown);
    Program program;
    const auto chase = program.block(0x100, {load(decoder::rax, decoder::rax)});
    const auto step = program.block(0x200, {load(decoder::rcx, decoder::rbx)});
    const auto profiler = make_latency_profiler(program.table, scale());
    Random random{7};
    trace::TraceChunk chunk;
    for (unsigned i = 0; i < 100; ++i) {
        chunk.blocks.push_back(chase);
        chunk.values.push_back(random.below(1000));
        chunk.blocks.push_back(step);
        chunk.values.push_back(24 * i);
    }
    profiler->open(start_of(trace::Contents::accesses, 0, 0))->digest(chunk);
    for (const auto& entry : yielded(*profiler).entries) {
        if (entry.location == at(0x100)) {
            CHECK(entry.pattern == AddressPattern::chase);
            CHECK(entry.origin == at(0x100));
        } else {
            CHECK(entry.pattern == AddressPattern::stride);
            CHECK(entry.step == 24);
        }
    }
}
