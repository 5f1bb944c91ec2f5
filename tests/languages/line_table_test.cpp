#include "languages/python/line_table.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <vector>

using namespace shadowprof::languages::python;

namespace {

using Line = std::optional<std::uint32_t>;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
    std::vector<std::byte> all;
    for (const auto v : values) all.push_back(static_cast<std::byte>(v));
    return all;
}

}  // namespace

// What Python says of `def f(n):\n    if n:\n        return 1\n    return 2\n`, whose first line is
// 1: dis.findlinestarts() has the lines.
TEST_CASE("lines of 3.9") {
    const auto table = bytes({0, 1, 4, 1, 4, 1});
    const auto line = [&](std::int64_t at) { return line_at(LineTable::increments, table, 1, at); };
    CHECK(line(-1) == Line{2});
    CHECK(line(0) == Line{2});
    CHECK(line(2) == Line{2});
    CHECK(line(4) == Line{3});
    CHECK(line(8) == Line{4});
    CHECK(line(100) == Line{4});
}

TEST_CASE("lines of 3.9 go backwards, too") {
    const auto table = bytes({6, 5, 4, 0xfd});
    CHECK(line_at(LineTable::increments, table, 10, 6) == Line{15});
    CHECK(line_at(LineTable::increments, table, 10, 10) == Line{12});
}

TEST_CASE("lines of 3.10") {
    const auto table = bytes({4, 1, 4, 1, 2, 0x80, 4, 1});
    const auto line = [&](std::int64_t at) { return line_at(LineTable::ranges, table, 1, at); };
    CHECK(line(0) == Line{2});
    CHECK(line(4) == Line{3});
    CHECK(line(8) == Line{});  // code of no line
    CHECK(line(10) == Line{4});
    CHECK(line(14) == Line{});  // behind the end
}

TEST_CASE("locations since 3.11") {
    // One line, two units; a short form, one unit; long form, + 70 lines, three units; none, one
    // unit; without columns, - 3 lines, one unit.
    const auto table = bytes({0x80 | 11 << 3 | 1, 0, 4,                   //
                              0x80 | 2 << 3 | 0, 0x11,                    //
                              0x80 | 14 << 3 | 2, 0x40 | 12, 2, 0, 1, 1,  //
                              0x80 | 15 << 3 | 0,                         //
                              0x80 | 13 << 3 | 0, 7});
    const auto line = [&](std::int64_t at) { return line_at(LineTable::locations, table, 5, at); };
    CHECK(line(-2) == Line{6});
    CHECK(line(0) == Line{6});
    CHECK(line(3) == Line{6});
    CHECK(line(4) == Line{6});
    CHECK(line(6) == Line{76});
    CHECK(line(11) == Line{76});
    CHECK(line(12) == Line{});
    CHECK(line(14) == Line{73});
    CHECK(line(16) == Line{});
}

TEST_CASE("a table that ends in the middle of an entry yields no line") {
    CHECK(line_at(LineTable::locations, bytes({0x80 | 14 << 3}), 5, 2) == Line{});
    CHECK(line_at(LineTable::ranges, bytes({4}), 5, 0) == Line{});
    CHECK(line_at(LineTable::locations, {}, 5, 0) == Line{});
}
