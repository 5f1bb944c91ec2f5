#include "report/views/flame_tree.h"

#include <doctest/doctest.h>

#include "sample_profile.h"

namespace shadowprof::report {

namespace {

std::string text_of(const FlameTree& tree) {
    std::string text;
    for (const auto& n : tree.nodes)
        text += std::string(n.depth, ' ') + tree.frames[n.frame].function + " " +
                std::to_string(n.weight) + "\n";
    return text;
}

Profile functions(std::initializer_list<std::pair<const char*, const char*>> blocks) {
    Profile p;
    p.modules = {{"/program", ""}};
    auto& path = p.add<PathSection>().entries.emplace_back();
    for (const auto& [function, exit] : blocks) {
        Location l;
        l.function = function;
        l.text = exit;
        const auto index = static_cast<LocationIndex>(p.locations.size());
        p.locations.push_back(l);
        path.blocks.push_back({index, index, 10});
    }
    path.statistics.count = 2;
    return p;
}

}  // namespace

TEST_CASE("a path's calls are frames") {
    const auto p =
        functions({{"g", "call 0x20"}, {"h", "jne 0x28"}, {"h", "ret"}, {"g", "je 0x0"}});
    CHECK(text_of(flame_of_paths(p)) == "g 80\n h 40\n");
}

TEST_CASE("a return tells who had called") {
    const auto p = functions({{"f", "ret"}, {"g", "call 0x20"}, {"h", "jne 0x28"}});
    CHECK(text_of(flame_of_paths(p)) == "g 60\n f 20\n h 20\n");
    const auto twice = functions({{"f", "ret"}, {"g", "ret"}, {"h", "je 0x0"}});
    CHECK(text_of(flame_of_paths(twice)) == "h 60\n g 40\n  f 20\n");
}

TEST_CASE("above a path stand those from which nearly all calls come") {
    auto p = functions({{"g", "call 0x20"}, {"h", "je 0x0"}, {"main", "call 0x0"}, {"f", "ret"}});
    p.find<PathSection>()->entries[0].blocks.resize(2);
    auto& calls = p.add<CallSection>();
    calls.totals.add_sample(100);
    const auto all = [](std::uint64_t n) {
        Statistics s;
        s.add_sample(n, 100);
        return s;
    };
    calls.entries = {{2, 0, all(100)}, {0, 1, all(100)}};
    CHECK(text_of(flame_of_paths(p)) == "main 40\n g 40\n  h 20\n");
    calls.entries.push_back({3, 0, all(50)});  // another caller: nobody knows whose the path is
    CHECK(text_of(flame_of_paths(p)) == "g 40\n h 20\n");
}

TEST_CASE("a tail call takes its caller's place") {
    const auto p = functions({{"f", "jmp 0x20"}, {"g", "ret"}, {"h", "je 0x0"}});
    CHECK(text_of(flame_of_paths(p)) == "h 60\n f 20\n g 20\n");
}

TEST_CASE("what is too light or too deep is summed up") {
    const auto p = functions({{"g", "call 0x20"}, {"h", "call 0x40"}, {"k", "je 0x0"}});
    FlameLimits limits;
    limits.greatest_depth = 2;
    const auto tree = flame_of_paths(p, limits);
    CHECK(text_of(tree) == "g 60\n h 40\n");
    CHECK(tree.left_out == 20);
    CHECK(tree.total == 60);
}

TEST_CASE("contexts are drawn from main on, and what is not listed is named") {
    auto p = sample_profile();
    CHECK(text_of(flame_of_contexts(p)) ==
          "main 95\n"
          " ns::parse 80\n"
          "[other contexts] 5\n");
    // Called by 8, which is no more than how main came to be; and by a signal.
    auto& list = *p.find<ContextSection>();
    for (auto& e : list.entries) e.frames.insert(e.frames.begin(), 8);
    auto outermost = list.entries[0];
    outermost.frames = {8};
    outermost.statistics = {};
    list.entries.insert(list.entries.begin(), outermost);
    list.entries.push_back({profile::ContextRoot::signal, {5}, 0, {1, 3, 9, 300}, {1, 5, 25, 500}});
    list.totals.unknown = 2;
    CHECK(text_of(flame_of_contexts(p)) ==
          "main 95\n"
          " ns::parse 80\n"
          "[signal] 5\n"
          " ns::parse 5\n"
          "  [other contexts] 2\n");
}

}  // namespace shadowprof::report
