#include "sampling/clock/merged_stack.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using namespace shadowprof;
using namespace shadowprof::sampling;

namespace {

using Names = std::vector<std::string>;

// The loop is machine code from 1000 on, which that from 2000 on calls; "c3000" is at 3000.
Names merged(const std::vector<std::uint64_t>& machine,
             const std::vector<std::pair<std::string, bool>>& functions, InterpreterFacts facts) {
    facts.language = "ruby";
    std::vector<Address> addresses;
    for (const auto at : machine) addresses.push_back({at});
    std::vector<languages::Frame> frames;
    for (const auto& [name, is_outermost] : functions)
        frames.push_back({std::make_shared<languages::Function>(languages::Function{name, "f", 1}),
                          1, is_outermost});
    const auto maps = proc::Maps::parse("");
    trace::ModuleTable modules;
    Names names;
    for (const auto& place : merge_stacks(addresses, frames, facts, &maps, modules)) {
        const auto function = modules.interpreted_at(place);
        names.push_back(function ? function->function.name : "c" + std::to_string(place.offset));
    }
    return names;
}

const InterpreterFacts simple{"", {{{1000}, {2000}}}, false};
const InterpreterFacts of_two{"", {{{1000}, {2000}}, {{2000}, {3000}}}, false};
const InterpreterFacts with_native{"", of_two.loop, true};

}  // namespace

TEST_CASE("each call of the loop gives way to what it executes") {
    CHECK(merged({3000, 1500, 3001, 1500, 3002}, {{"a", false}, {"b", true}, {"m", true}},
                 simple) == Names{"c3000", "a", "b", "c3001", "m", "c3002"});
    CHECK(merged({1500, 1500}, {{"a", true}, {"m", true}}, simple) == Names{"a", "m"});
}

TEST_CASE("a loop of two functions is one call of it") {
    CHECK(merged({3000, 1500, 2500, 3001, 1500, 2500, 3002}, {{"a", true}, {"m", true}}, of_two) ==
          Names{"c3000", "a", "c3001", "m", "c3002"});
    // In the outer one only; and the loop calls itself.
    CHECK(merged({2500, 3001, 1500, 2500}, {{"a", true}, {"m", true}}, of_two) ==
          Names{"a", "c3001", "m"});
    CHECK(merged({1500, 2500, 1500, 2500}, {{"a", true}, {"m", true}}, of_two) == Names{"a", "m"});
}

TEST_CASE("native functions take the place of the machine code around them") {
    CHECK(merged({3000, 3001, 1500, 2500, 3002, 1500, 2500, 3003},
                 {{"scan", false}, {"a", true}, {"each", false}, {"m", true}},
                 with_native) == Names{"c3000", "c3001", "scan", "a", "each", "m"});
}

TEST_CASE("what is left goes further out, and without functions machine code stays") {
    CHECK(merged({3000}, {{"a", true}, {"m", true}}, with_native) == Names{"c3000", "a", "m"});
    CHECK(merged({}, {{"a", true}}, of_two) == Names{"a"});
    CHECK(merged({3000, 1500, 2500}, {}, with_native) == Names{"c3000", "c1500", "c2500"});
}
