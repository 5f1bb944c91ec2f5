#include "trace/segment.h"

#include <doctest/doctest.h>

namespace shadowprof::trace {

namespace {

std::vector<BlockId> run_of(std::uint32_t first, std::size_t length) {
    std::vector<BlockId> blocks;
    for (std::uint32_t i = 0; i < length; ++i) blocks.push_back(BlockId{first + i});
    return blocks;
}

bool holds(const SegmentTable& table, SegmentId id, const std::vector<BlockId>& blocks) {
    const auto found = table.at(id);
    return std::vector<BlockId>{found.begin(), found.end()} == blocks;
}

}  // namespace

TEST_CASE("segments stay as they were published, however many come after them") {
    SegmentTable table;
    CHECK(table.size() == 0);
    constexpr std::uint32_t count = 20'000;  // many pages, many stores
    const auto length_of = [](std::uint32_t i) { return i == 777 ? 50'000 : 1 + i % 13; };
    for (std::uint32_t i = 0; i < count; ++i)
        REQUIRE(table.publish(run_of(i, length_of(i))) == SegmentId{i});
    CHECK(table.size() == count);
    for (std::uint32_t i = 0; i < count; ++i)
        REQUIRE(holds(table, SegmentId{i}, run_of(i, length_of(i))));
}

TEST_CASE("segments that begin alike share their blocks, in whichever order they come") {
    SegmentTable table;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> published;
    for (std::uint32_t row = 0; row < 300; ++row)
        for (const auto length : {1u, 2u, 90u, 40u, 91u, 200u, 3u, 201u})
            if (table.publish(run_of(row * 1000, length)) == SegmentId{table.size() - 1})
                published.emplace_back(row * 1000, length);
    REQUIRE(published.size() == 300 * 8);
    for (std::uint32_t i = 0; i < published.size(); ++i)
        REQUIRE(holds(table, SegmentId{i}, run_of(published[i].first, published[i].second)));
    CHECK(table.at(SegmentId{0}).data() == table.at(SegmentId{7}).data());
}

TEST_CASE("segments expand to the blocks they stand for") {
    SegmentTable table;
    const auto one = table.publish(run_of(10, 1));
    const auto three = table.publish(run_of(20, 3));
    SegmentChunk chunk;
    chunk.trace = TraceId{7};
    chunk.segments = {three, segment_discontinuity, one, three};
    chunk.continuations = {{Address{0x1234}, {ModuleId{1}, 0x34, 0}}};
    const auto blocks = expand(chunk, table);
    CHECK(blocks.trace == TraceId{7});
    CHECK(blocks.blocks == std::vector{BlockId{20}, BlockId{21}, BlockId{22}, discontinuity,
                                       BlockId{10}, BlockId{20}, BlockId{21}, BlockId{22}});
    CHECK(blocks.values == std::vector<std::uint64_t>{0x1234});
    CHECK(blocks.continuation_places == std::vector{Location{ModuleId{1}, 0x34, 0}});
}

}  // namespace shadowprof::trace
