#include "profile/stream/stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/random.h"
#include "decoder/decoder.h"
#include "profile/stream/reference_graph.h"
#include "profile/stream/stream_section.h"
#include "test_program.h"

using namespace shadowprof;
using namespace shadowprof::profile;

namespace {

// References by letters: the address is the letter, the place its case.
struct Letters {
    ReferenceGraph graph;
    ReferenceGraph::Cursor at;

    explicit Letters(const std::string& text, std::size_t most = tuning::most_references)
        : graph(most) {
        add(text);
    }
    void add(const std::string& text) {
        for (const char c : text)
            graph.add(at, {static_cast<std::uint64_t>(c | 0x20), (c & 0x20) != 0 ? 1u : 2u});
    }
    std::string text_of(const ReferenceGraph::Stream& stream) const {
        std::string text;
        const auto add = [&](ReferenceGraph::Key key) {
            const auto& r = graph.find(key)->reference;
            text += static_cast<char>(r.place == 1 ? r.address : r.address & ~0x20u);
        };
        if (!stream.beginnings.empty()) add(stream.beginnings.front());
        for (const auto key : stream.nodes) add(key);
        return text;
    }
    std::vector<std::string> streams(std::size_t least_length = 3) {
        std::vector<std::string> found;
        for (const auto& stream : graph.streams(least_length)) found.push_back(text_of(stream));
        std::ranges::sort(found);
        return found;
    }
};

using Texts = std::vector<std::string>;

std::string repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
}

decoder::Instruction load(unsigned bytes, std::uint8_t base = decoder::rbx) {
    decoder::Operand operand;
    operand.kind = decoder::OperandKind::memory;
    operand.memory.base = {decoder::RegisterKind::general, base, false, 64};
    operand.reads = true;
    operand.bits = static_cast<std::uint16_t>(8 * bytes);
    decoder::Instruction instruction;
    instruction.set_operands(decoder::shared(std::array{operand}));
    return instruction;
}

struct Program {
    trace::BlockTable table;

    BlockId block(std::uint64_t start, std::vector<decoder::Instruction> instructions) {
        trace::Block block;
        block.exit = BlockExit::jump;
        block.start = Address{0x400000 + start};
        block.place = at(start);
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            instructions[i].address = block.start + 4 * i;
            instructions[i].length = 4;
        }
        block.instructions = std::move(instructions);
        block.slots = trace::slots_of(block.instructions, trace::Capture::memory_addresses);
        return table.publish(std::move(block)).id;
    }
};

// One variable at 0x10000 of the module, so at address 0x410000.
class OneVariable : public FunctionMap {
  public:
    Location function_of(Location location) override {
        if (location.offset >= 0x10000 && location.offset < 0x20000) location.offset = 0x10000;
        return location;
    }
};

StreamHotlist streams_of(const Program& program, const TestTrace& trace) {
    OneVariable variables;
    const auto profiler = make_stream_profiler(program.table, variables, {});
    return *hotlists_of(*profiler, trace).find<StreamHotlist>();
}

}  // namespace

TEST_CASE("what goes round is one stream, wherever it was entered") {
    CHECK(Letters(repeated("abcdef", 12)).streams() == Texts{"abcdef"});
    CHECK(Letters(repeated("defabc", 12)).streams() == Texts{"abcdef"});
    CHECK(Letters(repeated("abab", 9)).streams(2) == Texts{"ab"});
}

TEST_CASE("sequences in changing order are streams of their own") {
    const auto found =
        Letters("abcd efgh ijkl efgh abcd ijkl abcd efgh ijkl ijkl abcd efgh xyz").streams();
    CHECK(found == Texts{"abcd ", "efgh ", "ijkl "});
}

TEST_CASE("what two sequences have in common takes neither apart") {
    // x is in both, after other references.
    const auto found = Letters(repeated("abxcd", 4) + repeated("efxgh", 4)).streams();
    CHECK(found == Texts{"abxcd", "efxgh"});
}

TEST_CASE("the same address by another instruction is another reference") {
    CHECK(Letters(repeated("abcABC", 12)).streams() == Texts{"abcABC"});
}

TEST_CASE("what does not come again is no stream") {
    CHECK(Letters("abcdefghijklmnopqrstuvwxyz").streams().empty());
    CHECK(Letters(repeated("abcdef", 2)).streams().empty());
    // Neither is what comes in another order each time.
    Random random(7);
    Letters letters("");
    for (int i = 0; i < 20000; ++i)
        letters.add(std::string(1, static_cast<char>('a' + random.below(26))));
    CHECK(letters.streams().empty());
}

TEST_CASE("a sequence that is sometimes left is still one") {
    CHECK(Letters(repeated(repeated("abcdef", 20) + "abcxyz", 3)).streams(6) == Texts{"abcdef"});
}

TEST_CASE("memory is bounded, and what comes again is remembered") {
    Letters letters("", 1000);
    Random random(7);
    std::size_t most = 0;
    for (int round = 0; round < 405; ++round) {
        letters.add("abcdefgh");
        for (int i = 0; i < 100; ++i) letters.graph.add(letters.at, {random(), 3});
        letters.graph.make_room();
        most = std::max(most, letters.graph.size());
    }
    CHECK(most < 1000 + 110);
    const auto found = letters.streams();
    REQUIRE(found.size() == 1);
    CHECK(found[0] == "abcdefgh");
}

TEST_CASE("a stream of most of what there is room for is not forgotten") {
    ReferenceGraph graph(1000);
    ReferenceGraph::Cursor at;
    Random random(7);
    for (int round = 0; round < 20; ++round) {
        for (std::uint64_t i = 0; i < 800; ++i) graph.add(at, {i, 1});
        for (int i = 0; i < 50; ++i) graph.add(at, {random(), 2});
        graph.make_room();
    }
    const auto streams = graph.streams(4);
    REQUIRE(streams.size() == 1);
    CHECK(streams[0].nodes.size() == 799);
}

TEST_CASE("graphs of samples add up") {
    Letters all("");
    for (int i = 0; i < 3; ++i) {
        Letters sample("abcdefgh");
        sample.graph.for_each([&](auto key, const auto& node) { all.graph.add(key, node); });
    }
    // What came before the first reference is not known.
    CHECK(all.streams() == Texts{"bcdefgh"});
}

TEST_CASE("counts are length times frequency, with the lines that a stream touches") {
    Program program;
    const auto walk = program.block(0x100, {load(8), load(4, decoder::rcx)});
    TestTrace trace;
    // Four records in an order of their own, in the variable; the second load is 8 further on.
    const std::vector<std::uint64_t> records{0x410000, 0x410300, 0x410100, 0x410280};
    for (int round = 0; round < 50; ++round)
        for (const auto record : records) trace.run(walk, {record, record + 8});
    const auto list = streams_of(program, trace);
    CHECK(list.totals.total == 400);
    CHECK(list.instructions == 400);
    CHECK(list.nearby == 0);
    REQUIRE(list.entries.size() == 1);
    const auto& e = list.entries[0];
    // All but the very first reference, which came after nothing.
    CHECK(e.statistics.count == 399);
    CHECK(e.times == 50);
    CHECK(e.lines == 50 * 4);
    CHECK(e.packed_lines == 50);
    REQUIRE(e.references.size() == 8);
    CHECK(e.references[0] == StreamReference<Location>{at(0x100), 0});
    CHECK(e.references[1] == StreamReference<Location>{at(0x104), 8});
    CHECK(e.references[2] == StreamReference<Location>{at(0x100), 0x2f8});
    CHECK(e.references[4] == StreamReference<Location>{at(0x100), -0x208});
    CHECK(*e.data == at(0x10000));
    CHECK(e.regular == 0);
}

TEST_CASE("references in step are told from others") {
    Program program;
    const auto walk = program.block(0x100, {load(8)});
    TestTrace trace;
    for (int round = 0; round < 10; ++round)
        for (std::uint64_t i = 0; i < 100; ++i) trace.run(walk, {0x7000 + 16 * i});
    const auto list = streams_of(program, trace);
    REQUIRE(list.entries.size() == 1);
    CHECK(!list.entries[0].data);
    CHECK(StreamHotlist::Entry::regularity(list.entries[0]) == 1);
}

TEST_CASE("what is near is no part of a stream, and part of the total") {
    Program program;
    const auto near = program.block(0x100, {load(8, decoder::rsp), load(8), load(8, decoder::rcx)});
    TestTrace trace;
    // By rsp, the same each time, and a record.
    for (int round = 0; round < 20; ++round)
        for (const std::uint64_t record : {0x8000, 0x8500, 0x8100, 0x8900})
            trace.run(near, {0x100 + 8u * static_cast<unsigned>(round), 0x9000, record});
    const auto list = streams_of(program, trace);
    CHECK(list.totals.total == 240);
    CHECK(list.nearby == 80 + 79);
    REQUIRE(list.entries.size() == 1);
    CHECK(list.entries[0].references.size() == 4);
    CHECK(list.entries[0].times == 20);
}

TEST_CASE("streams that look alike are one entry") {
    Program program;
    const auto walk = program.block(0x100, {load(8)});
    TestTrace trace;
    Random random(3);
    for (int round = 0; round < 400; ++round) {
        const auto list = 0x100000 * (1 + random.below(10));
        for (const std::uint64_t offset : {0x0, 0x540, 0x80, 0x2c0, 0x100})
            trace.run(walk, {list + offset});
    }
    const auto found = streams_of(program, trace);
    REQUIRE(found.entries.size() == 1);
    CHECK(found.entries[0].times >= 395);
    CHECK(found.entries[0].references.size() == 5);
    CHECK(found.entries[0].statistics.count >= 1990);
}

TEST_CASE("what was looked at counts for all that the sample executed") {
    Program program;
    const auto walk = program.block(0x100, {load(8)});
    OneVariable variables;
    const auto profiler = make_stream_profiler(program.table, variables, {});
    TestTrace window;
    window.start.contents = trace::Contents::values;
    for (int round = 0; round < 10; ++round)
        for (const std::uint64_t a : {0x100, 0x500, 0x200, 0x900}) window.run(walk, {a});
    read(*profiler, window);
    Counts counts;
    counts.exits = {{walk, Address{0x400100}, at(0x100), 80}};
    profiler->count(trace::SampleId{0}, counts);
    profiler->end_sample(trace::SampleId{0}, 5);
    Hotlists lists;
    profiler->yield(lists, Seen::samples);
    const auto& list = *lists.find<StreamHotlist>();
    CHECK(list.totals.total == 400);
    REQUIRE(list.entries.size() == 1);
    CHECK(list.entries[0].times >= 97);
    CHECK(list.entries[0].times <= 100);
}
