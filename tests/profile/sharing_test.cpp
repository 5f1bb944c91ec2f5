#include "profile/sharing/sharing.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "decoder/decoder.h"
#include "profile/sharing/line_window.h"
#include "profile/sharing/sharing_section.h"
#include "test_program.h"

using namespace shadowprof;
using namespace shadowprof::profile;

namespace {

constexpr std::uint64_t line = 0x10000;

struct Window {
    LineWindow window;

    Window& read(std::uint32_t thread, std::uint32_t place, std::uint64_t address, int times = 1,
                 bool is_locked = false) {
        return add(thread, place, address, times, false, is_locked);
    }
    Window& write(std::uint32_t thread, std::uint32_t place, std::uint64_t address, int times = 1,
                  bool is_locked = false) {
        return add(thread, place, address, times, true, is_locked);
    }
    std::vector<LineWindow::Shared> shared() {
        std::vector<LineWindow::Shared> all;
        window.close([&](const LineWindow::Shared& s) { all.push_back(s); });
        std::ranges::sort(all, {}, [](const auto& s) { return std::pair(s.place, s.address); });
        return all;
    }

  private:
    Window& add(std::uint32_t thread, std::uint32_t place, std::uint64_t address, int times,
                bool writes, bool is_locked) {
        for (int i = 0; i < times; ++i)
            window.add(thread, {address, 8, place, writes, is_locked, false});
        return *this;
    }
};

decoder::Instruction access(bool writes) {
    decoder::Operand operand;
    operand.kind = decoder::OperandKind::memory;
    operand.memory.base = {decoder::RegisterKind::general, decoder::rbx, false, 64};
    operand.reads = !writes;
    operand.writes = writes;
    operand.bits = 64;
    decoder::Instruction instruction;
    instruction.set_operands(decoder::shared(std::array{operand}));
    return instruction;
}

struct Program {
    trace::BlockTable table;

    BlockId block(std::uint64_t start, bool writes) {
        trace::Block block;
        block.exit = BlockExit::jump;
        block.start = Address{0x400000 + start};
        block.place = at(start);
        block.instructions = {access(writes)};
        block.instructions[0].address = block.start;
        block.instructions[0].length = 4;
        block.slots = block.accesses =
            trace::slots_of(block.instructions, trace::Capture::memory_addresses);
        return table.publish(std::move(block)).id;
    }
};

// Variables of 64 bytes at offsets from 0x10000 on.
class Variables : public FunctionMap {
  public:
    Location function_of(Location location) override {
        if (location.offset >= 0x10000) location.offset -= location.offset % 64;
        return location;
    }
};

SharingClock::time_point clock_now;

}  // namespace

TEST_CASE("other bytes of a line are false sharing, the same bytes true") {
    Window w;
    const auto apart = w.write(1, 1, line, 5).write(2, 2, line + 8, 7).shared();
    REQUIRE(apart.size() == 2);
    CHECK(apart[0].kind == Sharing::false_);
    CHECK(apart[0].other_place == 2);
    CHECK(apart[0].count == 5);
    CHECK(apart[1].count == 5);
    CHECK(apart[1].address == line + 8);
    CHECK(apart[1].other_address == line);
    const auto same = w.write(1, 1, line, 3).read(2, 2, line + 4, 2).shared();
    REQUIRE(same.size() == 2);
    CHECK(same[0].kind == Sharing::true_);
    CHECK(same[1].kind == Sharing::true_);
}

TEST_CASE("what one thread has, and what all only read, is not shared") {
    Window w;
    CHECK(w.write(1, 1, line, 9).write(2, 2, line + 64, 9).shared().empty());
    CHECK(w.read(1, 1, line, 9).read(2, 2, line, 9).shared().empty());
    CHECK(w.write(1, 1, line, 9).read(1, 2, line, 9).shared().empty());
    // Windows know nothing of one another.
    CHECK(w.write(1, 1, line).shared().empty());
    CHECK(w.write(2, 2, line).shared().empty());
}

TEST_CASE("a reader loses the line to writers alone, and no more often than they write") {
    Window w;
    const auto found =
        w.read(1, 1, line, 100).read(2, 2, line + 16, 100).write(3, 3, line + 8, 4).shared();
    REQUIRE(found.size() == 3);
    CHECK(found[0].count == 4);
    CHECK(found[1].count == 4);
    CHECK(found[0].other_place == 3);
    CHECK(found[2].count == 4);
}

TEST_CASE("a word that several threads lock is a lock word") {
    Window w;
    const auto found =
        w.write(1, 1, line, 2, true).write(2, 2, line, 2, true).read(2, 3, line, 2).shared();
    REQUIRE(found.size() == 3);
    CHECK(found[0].kind == Sharing::lock);
    CHECK(found[0].other_place == 2);
    CHECK(found[1].kind == Sharing::lock);
    CHECK(found[2].kind == Sharing::true_);
}

TEST_CASE("an access to two lines counts in both") {
    Window w;
    const auto found = w.write(1, 1, line + 60).write(2, 2, line).write(2, 3, line + 64).shared();
    REQUIRE(found.size() == 4);
    CHECK(found[0].kind == Sharing::false_);
    CHECK(found[1].kind == Sharing::true_);
    CHECK(found[2].kind == Sharing::false_);
}

TEST_CASE("threads that come within one window share, with the variables that they touch") {
    Program program;
    Variables variables;
    const auto one = program.block(0x100, true), two = program.block(0x200, true);
    for (const bool in_one_window : {true, false}) {
        clock_now = {};
        const auto profiler =
            make_sharing_profiler(program.table, variables, [] { return clock_now; });
        TestTrace a(0, 1), b(0, 2);
        for (int i = 0; i < 10; ++i) a.run(one, {0x410000}), b.run(two, {0x410008});
        const auto first = profiler->open(a.start), second = profiler->open(b.start);
        first->digest(a.all);
        if (!in_one_window) {
            clock_now += std::chrono::milliseconds{30};
            TestTrace elsewhere(0, 1);
            elsewhere.run(one, {0x7000});
            first->digest(elsewhere.all);
        }
        second->digest(b.all);
        profiler->end_sample(a.start.sample, 1);
        Hotlists lists;
        profiler->yield(lists, Seen::everything);
        const auto& list = *lists.find<SharingHotlist>();
        if (!in_one_window) {
            CHECK(list.entries.empty());
            CHECK(list.windows == 2);
            CHECK(list.shared == 0);
            // Alone a thread cannot show what it shares.
            CHECK(list.totals.total == 0);
            continue;
        }
        REQUIRE(list.entries.size() == 2);
        const auto& entry = list.entries[0];
        CHECK(entry.kind == Sharing::false_);
        CHECK(entry.memory == SharedMemory::variable);
        CHECK(entry.statistics.count == 10);
        CHECK(list.totals.total == 20);
        CHECK(list.windows == 1);
        CHECK(list.shared == 1);
        const bool is_first = entry.location == at(0x100);
        CHECK(*entry.data == at(is_first ? 0x10000 : 0x10008));
        CHECK(*entry.other_data == at(is_first ? 0x10008 : 0x10000));
        CHECK(entry.other == at(is_first ? 0x200 : 0x100));
    }
}

TEST_CASE("a thread that was recorded twice in one window shares nothing with itself") {
    Program program;
    Variables variables;
    const auto one = program.block(0x100, true), two = program.block(0x200, true);
    clock_now = {};
    const auto profiler = make_sharing_profiler(program.table, variables, [] { return clock_now; });
    TestTrace a(0, 1), again(0, 2), other(0, 3);
    a.start.state.tid = again.start.state.tid = 70;
    other.start.state.tid = 71;
    for (int i = 0; i < 10; ++i) {
        a.run(one, {0x410000});
        again.run(one, {0x410000});
        other.run(two, {0x420000});
    }
    for (const auto* trace : {&a, &again, &other}) profiler->open(trace->start)->digest(trace->all);
    profiler->end_sample(a.start.sample, 1);
    Hotlists lists;
    profiler->yield(lists, Seen::everything);
    const auto& list = *lists.find<SharingHotlist>();
    CHECK(list.entries.empty());
    CHECK(list.shared == 1);
    CHECK(list.totals.total == 30);
}

TEST_CASE("of samples, those that threads take part in together show what they share") {
    Program program;
    Variables variables;
    const auto one = program.block(0x100, true), two = program.block(0x200, true);
    for (const auto& [has_company, same_sample] :
         {std::pair{true, true}, std::pair{false, true}, std::pair{true, false}}) {
        CAPTURE(has_company);
        CAPTURE(same_sample);
        const auto profiler = make_sharing_profiler(
            program.table, variables, [] { return clock_now; }, SharingFrom::samples_in_company);
        CHECK(profiler->captures() == trace::CapturePlan{trace::Capture::latency});
        TestTrace a(0, 1), b(same_sample ? 0 : 1, 2);
        for (auto* trace : {&a, &b}) {
            trace->start.contents = trace::Contents::accesses;
            trace->start.has_company = has_company;
        }
        for (int i = 0; i < 10; ++i) a.run(one, {0x410000}), b.run(two, {0x410008});
        profiler->open(a.start)->digest(a.all);
        profiler->open(b.start)->digest(b.all);
        profiler->end_sample(a.start.sample, 1);
        if (!same_sample) profiler->end_sample(b.start.sample, 1);
        Hotlists lists;
        profiler->yield(lists, Seen::samples);
        const auto& list = *lists.find<SharingHotlist>();
        CHECK(list.entries.size() == (has_company && same_sample ? 2u : 0u));
        CHECK(list.windows == (!has_company ? 0u : same_sample ? 1u : 2u));
        CHECK(list.totals.total == (has_company && same_sample ? 20u : 0u));
    }
}
