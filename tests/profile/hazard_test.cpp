#include "profile/hazard/hazard.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "decoder/decoder.h"
#include "profile/hazard/hazard_section.h"
#include "profile/hazard/store_window.h"
#include "test_program.h"

using namespace shadowprof;
using namespace shadowprof::profile;

namespace {

using decoder::Instruction;
using decoder::Operand;
using decoder::OperandKind;
using How = StoreWindow::Met::How;

Operand reg(std::uint8_t number, bool reads, bool writes) {
    Operand operand;
    operand.kind = OperandKind::reg;
    operand.reg = {decoder::RegisterKind::general, number, false, 64};
    operand.reads = reads;
    operand.writes = writes;
    operand.bits = 64;
    return operand;
}

Operand memory(std::uint8_t base, unsigned bytes, bool reads) {
    Operand operand;
    operand.kind = OperandKind::memory;
    operand.memory.base = {decoder::RegisterKind::general, base, false, 64};
    operand.reads = reads;
    operand.writes = !reads;
    operand.bits = static_cast<std::uint16_t>(8 * bytes);
    return operand;
}

Instruction load(unsigned bytes, std::uint8_t to = decoder::rax, std::uint8_t base = decoder::rbx) {
    Instruction instruction;
    instruction.set_operands(
        decoder::shared(std::array{reg(to, false, true), memory(base, bytes, true)}));
    return instruction;
}
Instruction store(unsigned bytes, std::uint8_t base = decoder::rbx) {
    Instruction instruction;
    instruction.set_operands(
        decoder::shared(std::array{memory(base, bytes, false), reg(decoder::rax, true, false)}));
    return instruction;
}

struct Program {
    trace::BlockTable table;

    BlockId block(std::uint64_t start, std::vector<Instruction> instructions,
                  BlockExit exit = BlockExit::jump) {
        trace::Block block;
        block.exit = exit;
        block.start = Address{start};
        block.place = at(start);
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            instructions[i].address = Address{start + 4 * i};
            instructions[i].length = 4;
        }
        block.instructions = std::move(instructions);
        block.slots = trace::slots_of(block.instructions, trace::Capture::memory_addresses);
        return table.publish(std::move(block)).id;
    }
};

HazardCosts costs() {
    HazardCosts costs;
    for (auto& kind : costs.nanoseconds) kind = {8, 4, 2, 1, 0};
    return costs;
}

HazardHotlist hazards_of(const Program& program, const TestTrace& trace) {
    const auto profiler = make_hazard_profiler(program.table, costs());
    return *hotlists_of(*profiler, trace).find<HazardHotlist>();
}

}  // namespace

TEST_CASE("the youngest store that overlaps a load modulo 4 KB decides") {
    StoreWindow window;
    window.add(0x10000, 8, 0, 1);
    window.add(0x10004, 4, 1, 2);
    const auto met = [&](std::uint64_t address, std::uint64_t bytes) {
        const auto found = window.met_by(address, bytes, 2);
        return found ? std::pair{found->store->place, found->how} : std::pair{0u, How::whole};
    };
    CHECK(met(0x10000, 4) == std::pair{1u, How::whole});
    CHECK(met(0x10006, 2) == std::pair{2u, How::whole});
    CHECK(met(0x10000, 8) == std::pair{2u, How::part});
    CHECK(met(0x0ffff, 2) == std::pair{1u, How::part});
    CHECK(met(0x11002, 2) == std::pair{1u, How::alias});
    CHECK(met(0x11004, 1) == std::pair{2u, How::alias});
    CHECK(met(0x0f000, 64) == std::pair{2u, How::alias});
    CHECK(met(0x10008, 8).first == 0);
    CHECK(met(0x0fff8, 8).first == 0);
}

TEST_CASE("a store that spans the end of 4 KB is met on both sides") {
    StoreWindow window;
    window.add(0x10ffc, 8, 0, 1);
    CHECK(window.met_by(0x11000, 4, 1)->how == How::whole);
    CHECK(window.met_by(0x10ff8, 8, 1)->how == How::part);
    CHECK(window.met_by(0x30000, 4, 1)->how == How::alias);
    CHECK(!window.met_by(0x11004, 4, 1));
}

TEST_CASE("stores are in flight until enough others or instructions followed, or all are written") {
    StoreWindow window;
    window.add(0x1000, 8, 0, 1);
    CHECK(window.met_by(0x1000, 8, tuning::instructions_in_flight));
    CHECK(!window.met_by(0x1000, 8, tuning::instructions_in_flight + 1));
    for (std::size_t i = 1; i < tuning::stores_in_flight; ++i) window.add(0x1100, 8, 0, 2);
    CHECK(window.met_by(0x1000, 8, 1));
    window.add(0x1100, 8, 0, 2);
    CHECK(!window.met_by(0x1000, 8, 1));
    CHECK(window.met_by(0x1100, 8, 1));
    window.clear();
    CHECK(!window.met_by(0x1100, 8, 1));
}

TEST_CASE("both instructions of a pair are named, with their distance and their cost") {
    Program program;
    const auto pair = program.block(0x100, {store(4), Instruction{}, load(8)});
    const auto alias = program.block(0x200, {store(8), load(8)});
    TestTrace trace;
    for (int i = 0; i < 3; ++i) trace.run(pair, {0x5000, 0x5000});
    trace.run(alias, {0x6000, 0x9000});
    const auto list = hazards_of(program, trace);
    REQUIRE(list.entries.size() == 2);
    const auto& failed = list.entries[0];
    CHECK(failed.kind == Hazard::failed_forwarding);
    CHECK(*failed.store == at(0x100));
    CHECK(failed.location == at(0x108));
    CHECK(failed.statistics.count == 3);
    CHECK(failed.distance == 3);
    CHECK(failed.cost_ps == 3 * 7750);
    const auto& aliasing = list.entries[1];
    CHECK(aliasing.kind == Hazard::aliasing);
    CHECK(*aliasing.store == at(0x200));
    CHECK(aliasing.location == at(0x204));
    CHECK(aliasing.cost_ps == 8000);
    CHECK(list.totals.total == 8);
    CHECK(list.instructions == 11);
}

TEST_CASE("splits are told apart: loads and stores, lines and pages") {
    Program program;
    const auto both = program.block(0x100, {load(8), store(8, decoder::rcx)});
    TestTrace trace;
    trace.run(both, {0x103c, 0x2200}).run(both, {0x1ffc, 0x207c}).run(both, {0x1038, 0x4ffd});
    const auto list = hazards_of(program, trace);
    REQUIRE(list.entries.size() == 4);
    for (const auto& e : list.entries) {
        CHECK(!e.store);
        CHECK(e.statistics.count == 1);
        CHECK(
            e.location ==
            at(e.kind == Hazard::split_load || e.kind == Hazard::page_split_load ? 0x100 : 0x104));
    }
}

TEST_CASE("accesses that do not meet are no hazard") {
    Program program;
    const auto id = program.block(0x100, {store(8), load(8), load(4), store(8), load(8)});
    const auto call = program.block(0x200, {store(4)}, BlockExit::system_call);
    const auto after = program.block(0x300, {load(8)});
    TestTrace trace;
    for (int i = 0; i < 10; ++i) trace.run(id, {0x5000, 0x5000, 0x5004, 0x5008, 0x5010});
    trace.run(call, {0x6000}).run(after, {0x6000});
    trace.run(program.block(0x400, {store(4)}), {0x7000}).interrupt(0x300).run(after, {0x7000});
    const auto list = hazards_of(program, trace);
    CHECK(list.entries.empty());
    CHECK(list.totals.total == 54);
}

TEST_CASE("a load whose address comes from the store's data is no candidate") {
    Program program;
    using namespace decoder;
    // [rbx] is written, rcx loaded from it, and [rcx] read, which overlaps the store in part.
    const auto waits = program.block(0x100, {store(8), load(8, rcx, rbx), load(8, rdx, rcx)});
    // The same, but what rcx points to leads there by another load.
    const auto by_another =
        program.block(0x200, {store(8), load(8, rcx, rbx), load(8, rcx, rcx), load(8, rdx, rcx)});
    // And in another block.
    const auto first = program.block(0x300, {store(8), load(8, rcx, rbx)});
    const auto second = program.block(0x400, {load(8, rdx, rcx)});
    TestTrace trace;
    trace.run(waits, {0x5000, 0x5000, 0x5004});
    trace.run(by_another, {0x6000, 0x6000, 0x8800, 0x6004});
    trace.run(first, {0x7000, 0x7000}).run(second, {0x9004});
    CHECK(hazards_of(program, trace).entries.empty());
    // Without the dependence it is one.
    const auto does_not = program.block(0x500, {store(8), load(8, rcx, rbx), load(8, rdx, rsi)});
    TestTrace other;
    other.run(does_not, {0x5000, 0x5000, 0x5004});
    CHECK(hazards_of(program, other).entries.size() == 1);
}

TEST_CASE("what was looked at counts for all that the sample executed") {
    Program program;
    const auto pair = program.block(0x100, {store(4), load(8)});
    const auto profiler = make_hazard_profiler(program.table, costs());
    TestTrace window;
    window.start.contents = trace::Contents::values;
    window.run(pair, {0x5000, 0x5000}).run(pair, {0x6000, 0x6010});
    read(*profiler, window);
    Counts counts;
    counts.exits = {{pair, Address{0x100}, at(0x100), 20}};
    profiler->count(trace::SampleId{0}, counts);
    profiler->end_sample(trace::SampleId{0}, 5);
    Hotlists lists;
    profiler->yield(lists, Seen::samples);
    const auto& list = *lists.find<HazardHotlist>();
    CHECK(list.totals.total == 200);
    REQUIRE(list.entries.size() == 1);
    CHECK(list.entries[0].statistics.count == 50);
    CHECK(list.entries[0].cost_ps == 50 * 8000);
}
