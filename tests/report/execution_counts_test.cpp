#include "report/views/execution_counts.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace shadowprof::report {

namespace {

// A loop that runs 10 times, called once:
//     0  mov            entered by a call
//     4  cmp            entered from above and from c
//     8  je 10          taken once
//     a  add
//     c  jmp 4          10 times
//    10  ret
std::vector<ListedInstruction> code_of_a_loop() {
    return {{0x0, false, false}, {0x4, false, true}, {0x8, true, true},
            {0xa, false, true},  {0xc, true, true},  {0x10, true, true}};
}

struct Built {
    Profile profile;

    Built() { profile.modules = {{"m", ""}}; }
    LocationIndex at(std::uint64_t offset) {
        auto& all = profile.locations;
        for (LocationIndex i = 0; i < all.size(); ++i)
            if (all[i].offset == offset) return i;
        all.emplace_back().offset = offset;
        return static_cast<LocationIndex>(all.size() - 1);
    }
    void edge(std::uint64_t from, std::uint64_t to, std::uint64_t n) {
        if (!profile.find<EdgeSection>()) profile.add<EdgeSection>();
        Statistics s;
        s.add_sample(n, n);
        profile.find<EdgeSection>()->entries.push_back({at(from), at(to), EdgeKind::taken, s});
    }
    void path(std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks, std::uint64_t n) {
        if (!profile.find<PathSection>()) profile.add<PathSection>();
        PathEntry e;
        for (auto [start, end] : blocks) e.blocks.push_back({at(start), at(end), 1});
        e.statistics.add_sample(n, n);
        profile.find<PathSection>()->entries.push_back(e);
    }
    void value(std::uint64_t offset, std::uint32_t operand, std::uint64_t n) {
        if (!profile.find<ValueSection>()) profile.add<ValueSection>();
        ValueEntry e;
        e.location = at(offset);
        e.operand_index = operand;
        e.executions.add_sample(n);
        profile.find<ValueSection>()->entries.push_back(e);
    }
    std::vector<std::uint64_t> counts() { return *execution_counts(profile, 0, code_of_a_loop()); }
};

using Counts = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("from edges, every instruction's count follows") {
    Built b;
    b.edge(0x100, 0x0, 1);  // the call
    b.edge(0x8, 0xa, 10);
    b.edge(0x8, 0x10, 1);
    b.edge(0xc, 0x4, 10);
    b.edge(0x10, 0x105, 1);
    CHECK(b.counts() == Counts{1, 11, 11, 10, 10, 1});
}

TEST_CASE("from paths, those of the instructions they ran through") {
    Built b;
    b.path({{0x0, 0x8}, {0xa, 0xc}}, 1);
    b.path({{0x4, 0x8}, {0xa, 0xc}}, 9);
    b.path({{0x4, 0x8}, {0x10, 0x10}}, 1);
    CHECK(b.counts() == Counts{11, 11, 11, 10, 10, 1});
}

TEST_CASE("from values, those of the instructions that share the block; operands do not add up") {
    Built b;
    b.value(0xa, 0, 10);
    b.value(0xa, 1, 10);
    b.value(0x10, 0, 2);
    b.value(0x10, 0, 3);  // two contexts of one operand do
    CHECK(b.counts() == Counts{0, 0, 0, 10, 10, 5});
}

TEST_CASE("where hotlists were cut, the one that saw more counts") {
    Built b;
    b.edge(0xc, 0x4, 10);
    b.path({{0xa, 0xc}}, 4);
    b.value(0x10, 0, 1);
    CHECK(b.counts() == Counts{0, 10, 10, 10, 10, 1});
}

TEST_CASE("a profile of calls alone counts no instructions") {
    Profile p;
    p.add<CallSection>();
    CHECK(!execution_counts(p, 0, code_of_a_loop()));
}

}  // namespace shadowprof::report
