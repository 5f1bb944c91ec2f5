#include "trace/location.h"

#include <doctest/doctest.h>

#include <unordered_set>

using namespace shadowprof;
using namespace shadowprof::trace;

TEST_CASE("a module is its path and its build id") {
    ModuleTable table;
    const auto libc = table.intern({.path = "/lib/libc.so.6", .build_id = "ab12"});
    CHECK(table.intern({.path = "/lib/libc.so.6", .build_id = "ab12"}) == libc);
    const auto upgraded = table.intern({.path = "/lib/libc.so.6", .build_id = "cd34"});
    CHECK(upgraded != libc);
    CHECK(table.at(libc).build_id == "ab12");
    CHECK(table.at(upgraded).build_id == "cd34");
    CHECK(table.all().size() == 2);
}

TEST_CASE("locations differ by module, offset and content") {
    const Location here{ModuleId{1}, 0x10, 0};
    CHECK(here + 4 == Location{ModuleId{1}, 0x14, 0});
    const std::unordered_set<Location, LocationHash> set{
        here, {ModuleId{2}, 0x10, 0}, {ModuleId{1}, 0x11, 0}, {ModuleId{1}, 0x10, 9}, here};
    CHECK(set.size() == 4);
    CHECK(hash_of(here) != hash_of(here + 1));
}
