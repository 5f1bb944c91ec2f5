#include "proc/unwind_table.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>

using namespace shadowprof;
using namespace shadowprof::proc;

TEST_CASE("functions of a loaded image begin and end where its table for unwinding says") {
    const auto maps = Maps::of(getpid());
    REQUIRE(maps);
    const Address begin{reinterpret_cast<std::uint64_t>(&std::strtol)};
    const auto* const module = maps->module_at(begin);
    REQUIRE(module);
    const Memory memory{getpid()};
    const UnwindTable functions{*module, memory};
    const auto function = functions.function_at(begin);
    REQUIRE(function);
    CHECK(function->begin == begin);
    CHECK(function->size() > 1);
    CHECK(functions.function_at(function->end - 1) == function);
    CHECK(functions.function_at(function->end) != function);
    CHECK(!functions.function_at(Address{8}));
    CHECK(!functions.function_at(Address{~std::uint64_t{0}}));
    const MappedModule none{"", "", {{4096}, {8192}}, 0};
    CHECK(!UnwindTable{none, memory}.function_at(begin));
}
