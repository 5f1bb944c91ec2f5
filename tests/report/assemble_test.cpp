#include "report/model/assemble.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "model/profile_file.h"
#include "profile/registry.h"
#include "report/model/host_facts.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

using profile::Hotlists;

class Bytes : public trace::CodeSource {
  public:
    Bytes(Address base, std::vector<std::uint8_t> code) : base_(base), code_(std::move(code)) {}
    std::size_t read_code(Address at, std::span<std::byte> into) override {
        const auto skipped = at - base_;
        if (skipped >= code_.size()) return 0;
        const auto n = std::min(into.size(), code_.size() - skipped);
        std::memcpy(into.data(), code_.data() + skipped, n);
        return n;
    }

  private:
    Address base_;
    std::vector<std::uint8_t> code_;
};

// A run that met its modules in an order that is not that of their paths, with one block:
//     0x1000  mov eax, [rdi+8]     8b 47 08
//     0x1003  cmp eax, 5           83 f8 05
//     0x1006  jne 0x1000           75 f8
struct MadeUp {
    static constexpr Address loaded_at{0x555500001000};
    trace::BlockTable blocks;
    trace::ModuleTable modules;
    trace::ModuleId other = modules.intern({"/z/library.so", "22"});
    trace::ModuleId unused = modules.intern({"/unused", "33"});
    trace::ModuleId program = modules.intern({"/a/program", "11"});
    Symbols symbols;

    MadeUp() {
        Bytes code(loaded_at, {0x8b, 0x47, 0x08, 0x83, 0xf8, 0x05, 0x75, 0xf8});
        trace::Block block;
        block.start = loaded_at;
        block.place = at(0x1000);
        block.exit = trace::BlockExit::conditional;
        block.instructions = trace::decode_block(code, loaded_at);
        REQUIRE(block.instructions.size() == 3);
        blocks.publish(block);
    }
    trace::Location at(std::uint64_t offset) const { return {program, offset, 0}; }
    trace::Location in_other(std::uint64_t offset) const { return {other, offset, 0}; }

    Profile assemble(const Hotlists& lists, KeepOptions options = {}) {
        RunFacts facts;
        facts.tool = "test";
        auto p = report::assemble(facts, lists, blocks, modules, symbols, options);
        CHECK(defect_of(p) == std::nullopt);
        CHECK(profile::from_json(to_json(p)) == p);
        return p;
    }
};

model::Totals totals(std::uint64_t n) {
    model::Totals t;
    t.add_sample(n);
    t.exhaustive = true;
    return t;
}

}  // namespace

TEST_CASE("modules and locations are in the order of paths and offsets") {
    MadeUp run;
    Hotlists lists;
    lists.add(profile::EdgeHotlist(
        {totals(10),
         {{run.in_other(0x50), run.at(0x1000), profile::EdgeKind::return_, exactly(6, 10)},
          {run.at(0x1006), run.at(0x1000), profile::EdgeKind::taken, exactly(4, 10)}}}));
    const auto p = run.assemble(lists);
    REQUIRE(p.modules.size() == 2);
    CHECK(p.modules[0] == Module{"/a/program", "11"});
    CHECK(p.modules[1] == Module{"/z/library.so", "22"});
    REQUIRE(p.locations.size() == 3);
    CHECK(p.locations[0].offset == 0x1000);
    CHECK(p.locations[1].offset == 0x1006);
    CHECK(p.locations[2].offset == 0x50);
    CHECK(p.locations[2].module == 1);
    CHECK(p.find<EdgeSection>()->entries[0].from == 2);
    CHECK(p.find<EdgeSection>()->entries[1].from == 1);
    CHECK(p.find<EdgeSection>()->entries[1].to == 0);
}

TEST_CASE("instructions are quoted with link-time addresses") {
    MadeUp run;
    Hotlists lists;
    lists.add(profile::EdgeHotlist(
        {totals(1), {{run.at(0x1006), run.at(0x1000), profile::EdgeKind::taken, exactly(1, 1)}}}));
    const auto p = run.assemble(lists);
    CHECK(p.locations[0].text == "mov eax, [rdi+0x8]");
    CHECK(p.locations[1].text == "jne 0x1000");
}

TEST_CASE("what --limit drops becomes unknown; ties go by place, not by order of arrival") {
    MadeUp run;
    Hotlists lists;
    auto& edges = lists.add(profile::EdgeHotlist{});
    edges.totals = totals(100);
    edges.totals.unknown = 3;
    // 97 = 7 + 10 × 9; the ties in descending order of place.
    for (std::uint64_t i = 10; i > 0; --i)
        edges.entries.push_back(
            {run.in_other(i), run.at(0x1000), profile::EdgeKind::indirect, exactly(9, 100)});
    edges.entries.push_back(
        {run.at(0x1006), run.at(0x1000), profile::EdgeKind::taken, exactly(7, 100)});

    KeepOptions options;
    options.limit = 3;
    const auto p = run.assemble(lists, options);
    REQUIRE(p.find<EdgeSection>()->entries.size() == 3);
    CHECK(p.find<EdgeSection>()->totals.total == 100);
    CHECK(p.find<EdgeSection>()->totals.unknown == 73);
    CHECK(p.find<EdgeSection>()->dropped == 8);
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(p.at(p.find<EdgeSection>()->entries[i].from).offset == i + 1);
    CHECK(p.locations.size() == 4);  // of dropped entries nothing is left

    options.limit = 0;
    const auto all = run.assemble(lists, options);
    CHECK(all.find<EdgeSection>()->entries.size() == 11);
    CHECK(all.find<EdgeSection>()->totals.unknown == 3);
    CHECK(all.find<EdgeSection>()->dropped == 0);
}

TEST_CASE("blocks of paths say where they end") {
    MadeUp run;
    Hotlists lists;
    lists.add(profile::PathHotlist({totals(5),
                                    {{{{run.at(0x1000), run.at(0x1006), 3}}, exactly(4, 5)},
                                     {{{run.at(0x1000), run.at(0x1003), 2}}, exactly(1, 5)}}}));
    const auto p = run.assemble(lists);
    const auto& entries = p.find<PathSection>()->entries;
    CHECK(p.at(entries[0].blocks[0].end).offset == 0x1006);
    CHECK(p.at(entries[0].blocks[0].end).text == "jne 0x1000");
    CHECK(p.at(entries[1].blocks[0].end).offset == 0x1003);
    CHECK(entries[0].instructions() == 3);
}

TEST_CASE("methods keep both totals") {
    MadeUp run;
    Hotlists lists;
    auto& methods = lists.add(profile::MethodHotlist{});
    methods.totals = totals(10);
    methods.instructions = totals(1000);
    methods.entries = {{run.at(0x1000), exactly(8, 10), 5, 1, 3, exactly(600, 1000)},
                       {run.in_other(1), exactly(2, 10), 2, 0, 0, exactly(390, 1000)}};
    KeepOptions options;
    options.limit = 1;
    const auto p = run.assemble(lists, options);
    CHECK(p.find<MethodSection>()->totals.unknown == 2);
    CHECK(p.find<MethodSection>()->dropped == 1);
    CHECK(p.find<MethodSection>()->instructions.unknown == 400);
}

TEST_CASE("values: operands by name, dropped values become unknown") {
    MadeUp run;
    Hotlists lists;
    auto& values = lists.add(profile::ValueHotlist{});
    values.totals = totals(300);
    profile::ValueHotlist::Entry reg;
    reg.location = run.at(0x1000);
    reg.bits = 32;
    reg.kind = ValueKind::register_;
    reg.executions = totals(100);
    for (std::uint64_t i = 0; i < 30; ++i) reg.top.push_back({i, exactly(3, 100)});
    auto address = reg;
    address.operand_index = 1;
    address.kind = ValueKind::address;
    address.context = run.at(0x1003);
    address.top = {{0x5000, exactly(100, 100)}};
    address.stride = Stride{8, 0.5};
    auto overestimated = address;
    overestimated.kind = ValueKind::loaded;
    overestimated.top = {{1, exactly(80, 100)}, {2, exactly(30, 100)}, {3, exactly(5, 100)}};
    values.entries = {reg, address, overestimated};

    const auto p = run.assemble(lists);
    REQUIRE(p.find<ValueSection>()->entries.size() == 3);
    const auto of_kind = [&](ValueKind kind) {
        return *std::find_if(p.find<ValueSection>()->entries.begin(),
                             p.find<ValueSection>()->entries.end(),
                             [&](const auto& e) { return e.kind == kind; });
    };
    const auto r = of_kind(ValueKind::register_);
    CHECK(r.operand == "eax");
    CHECK(r.top.size() == 16);
    CHECK(r.executions.unknown == 100 - 16 * 3);
    const auto a = of_kind(ValueKind::address);
    CHECK(a.operand == "[rdi+0x8]");
    CHECK(a.stride == Stride{8, 0.5});
    REQUIRE(a.context);
    CHECK(p.at(*a.context).offset == 0x1003);
    CHECK(p.at(*a.context).return_address);
    CHECK(p.at(*a.context).text.empty());
    // Estimates that exceed what was executed give way from the rarest on.
    const auto o = of_kind(ValueKind::loaded);
    REQUIRE(o.top.size() == 2);
    CHECK(o.top[0].statistics.count == 80);
    CHECK(o.top[1].statistics.count == 20);
    CHECK(o.executions.unknown == 0);
}

TEST_CASE("values: all executions count, whatever was read of them") {
    MadeUp run;
    Hotlists lists;
    auto& values = lists.add(profile::ValueHotlist{});
    values.totals = totals(30);
    values.unread = 5010 - 30;
    profile::ValueHotlist::Entry rare;
    rare.location = run.at(0x1000);
    rare.kind = ValueKind::register_;
    rare.executions = totals(20);
    rare.unread = 1000 - 20;
    rare.top = {{7, exactly(15, 20)}};
    auto frequent = rare;
    frequent.kind = ValueKind::address;
    frequent.operand_index = 1;
    frequent.executions = totals(10);
    frequent.unread = 4000 - 10;
    values.entries = {rare, frequent};
    KeepOptions options;
    options.limit = 1;
    values.totals.exhaustive = false;
    for (auto& e : values.entries) e.executions.exhaustive = false;
    const auto p = run.assemble(lists, options);
    REQUIRE(p.find<ValueSection>()->entries.size() == 1);
    const auto& kept = p.find<ValueSection>()->entries[0];
    CHECK(kept.kind == ValueKind::address);
    CHECK(kept.all_executions() == 4000);
    CHECK(kept.unread == 3990);
    CHECK(p.find<ValueSection>()->unread == 5010 - 30);
    CHECK(p.find<ValueSection>()->totals.unknown == 20);
    CHECK(p.find<ValueSection>()->all_executions().unknown == 1010);
}

TEST_CASE("contexts: the list is cut where least is in them, callees before callers") {
    MadeUp run;
    using Root = profile::ContextRoot;
    const auto outer = run.at(0x1000), inner = run.at(0x1100);
    Hotlists lists;
    lists.add(profile::ContextHotlist(
        {totals(9),
         {{Root::thread, {outer}, 0, exactly(4, 9), exactly(9, 9)},
          {Root::thread, {outer, inner}, 1, exactly(0, 9), exactly(5, 9)},
          {Root::thread, {outer, inner, inner}, 1, exactly(5, 9), exactly(5, 9)}}}));
    const auto p = run.assemble(lists, {.limit = 2});
    const auto& list = *p.find<ContextSection>();
    REQUIRE(list.entries.size() == 2);
    CHECK(list.entries[1].frames.size() == 2);
    CHECK(list.entries[1].inclusive.count == 5);
    CHECK(list.dropped == 1);
    CHECK(list.totals.unknown == 5);
    CHECK_FALSE(p.at(list.entries[1].frames[0]).return_address);
}

TEST_CASE("the machine has a name") {
    const auto host = host_facts();
    CHECK(!host.cpu.empty());
    CHECK(!host.kernel.empty());
    CHECK(host.cores >= 1);
}

}  // namespace shadowprof::report
