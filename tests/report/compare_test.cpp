#include "report/compare/compare.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "base/error.h"
#include "model/json_cursor.h"
#include "model/profile_file.h"
#include "model/utf8.h"
#include "profile/registry.h"
#include "report/compare/compare_json.h"
#include "report/compare/compare_text.h"
#include "sample_profile.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

Comparison comparison_of(Profile sampled, Profile perfect) {
    return compare({"s.json", std::move(sampled)}, {"p.json", std::move(perfect)});
}

std::string why_not(Profile sampled, Profile perfect, ExitStatus status) {
    try {
        comparison_of(std::move(sampled), std::move(perfect));
        return "they were compared";
    } catch (const UserError& e) {
        CHECK(e.status() == status);
        return e.what();
    }
}

// The same facts in another order: what an index is depends on chance, what it means does not.
Profile shuffled(Profile p, std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto shuffle = [&](auto* list) {
        if (list) std::shuffle(list->entries.begin(), list->entries.end(), random);
    };
    shuffle(p.find<PathSection>());
    shuffle(p.find<EdgeSection>());
    shuffle(p.find<CallSection>());
    shuffle(p.find<MethodSection>());
    shuffle(p.find<ValueSection>());
    auto tree = nlohmann::json::parse(to_json(p));
    const auto permutation = [&](std::size_t n) {
        std::vector<std::size_t> to(n);
        for (std::size_t i = 0; i < n; ++i) to[i] = i;
        std::shuffle(to.begin(), to.end(), random);
        return to;
    };
    const auto permute = [](nlohmann::json& array, const std::vector<std::size_t>& to) {
        const auto old = array;
        for (std::size_t i = 0; i < to.size(); ++i) array[to[i]] = old[i];
    };
    const auto modules = permutation(p.modules.size());
    permute(tree["modules"], modules);
    for (auto& l : tree["locations"]) l["module"] = modules[l["module"].get<std::size_t>()];
    const auto locations = permutation(p.locations.size());
    permute(tree["locations"], locations);
    const auto move = [&](nlohmann::json& index) { index = locations[index.get<std::size_t>()]; };
    for (const char* list :
         {"contexts", "callers", "paths", "edges", "calls", "methods", "values"}) {
        if (!tree.contains(list)) continue;
        for (auto& e : tree[list]["entries"])
            for (const char* key : {"frames", "blocks", "ends", "from", "to", "function", "caller",
                                    "location", "context"}) {
                if (!e.contains(key)) continue;
                if (e[key].is_array())
                    for (auto& index : e[key]) move(index);
                else
                    move(e[key]);
            }
    }
    return profile::from_json(tree.dump());
}

}  // namespace

TEST_CASE("a profile compared with itself is perfect") {
    const auto c = comparison_of(sample_profile(), sample_profile());
    CHECK(*c.coverage.measure == 1);
    CHECK(c.paths.measure->accuracy == Figure{1, 1, 1});
    CHECK(c.calls.measure->accuracy == Figure{1, 1, 1});
    CHECK(c.methods.measure->accuracy == Figure{1, 1, 1});
    CHECK(c.values.measure->difference == Figure{0, 0, 0});
    CHECK(*c.edges.measure == Figure{1, 1, 1});
    for (const auto& f : c.functions) {
        CAPTURE(f.name);
        CHECK(f.sampled_share == f.perfect_share);
        if (f.path_accuracy) CHECK(*f.path_accuracy == 1);
        if (f.edge_accuracy) CHECK(*f.edge_accuracy == 1);
        if (f.call_overlap) CHECK(*f.call_overlap == 1);
        if (f.diff_top) CHECK(*f.diff_top == 0);
    }
}

TEST_CASE("figures of two runs, worked out by hand") {
    const auto c = comparison_of(partial_profile(), sample_profile());
    CHECK(*c.coverage.measure == 0.25);  // 300 of 1200 instructions

    // Two are listed, two were dropped: 5 % of 4 paths is 1 path, and the hottest is the same.
    CHECK(c.paths.measure->accuracy == Figure{1, 1, 1});
    CHECK(c.paths.measure->paths == 4);

    // Of 100 each: 50 and 30 of the call, 28 and 28 of the jump. Three edges were dropped from the
    // sample, none with more than 28, and all with 22. The perfect profile has 30 + 10 + 2 for
    // them.
    CHECK(c.edges.measure->value == doctest::Approx(0.58));
    CHECK(c.edges.measure->low == doctest::Approx(0.58));
    CHECK(c.edges.measure->high == doctest::Approx(0.80));

    // One call, 45 and 90 of 100, which makes up the top 90 % alone.
    CHECK(c.calls.measure->overlap == doctest::Approx(0.45));
    CHECK(c.calls.measure->best == doctest::Approx(0.90));
    CHECK(c.calls.measure->accuracy.value == doctest::Approx(0.5));

    // Registers: eax saw its top value in 75 of 100 executions and in 90 of 100, xmm0 in 50 of 100
    // both times. The address is none. (0.15 · 100 + 0 · 100) / 200.
    CHECK(c.values.measure->operands == 2);
    CHECK(c.values.measure->difference.value == doctest::Approx(0.075));

    CHECK_FALSE(c.methods.measure);
    CHECK(c.methods.why_not == "no methods in s.json: profile with -p method");

    REQUIRE(c.lists.size() == 4);
    CHECK(c.lists[1].name == "edges");
    CHECK(c.lists[1].sampled.entries == 2);
    CHECK(c.lists[1].sampled.dropped == 3);
    CHECK(c.lists[1].sampled.unlisted == doctest::Approx(0.22));
    CHECK(c.lists[1].perfect.entries == 5);
    CHECK(c.lists[1].in_both == 2);
    CHECK_FALSE(c.is_exact());
}

TEST_CASE("functions by themselves, worked out by hand") {
    auto sampled = sample_profile();
    // The jump of main's loop, 28 and 2 of 60 that leave main, beside 30 calls; now 30, 10 and 20.
    sampled.find<EdgeSection>()->entries[0].statistics.count = 30;
    sampled.find<EdgeSection>()->entries[1].statistics.count = 10;
    sampled.find<EdgeSection>()->entries[4].statistics.count = 20;
    const auto c = comparison_of(sampled, sample_profile());
    REQUIRE(c.functions.size() == 3);
    const auto& main = c.functions[0];
    CHECK(main.name == "main");
    CHECK(main.label == "main");
    CHECK(main.module == "/usr/bin/app");
    CHECK(main.offset == 0x1000);
    CHECK(*main.perfect_share == doctest::Approx(0.5));  // 50 of 100 instructions
    // Shares 30, 10, 20 and 30, 28, 2 of 60: 30 + 10 + 2.
    CHECK(*main.edge_accuracy == doctest::Approx(42.0 / 60));
    CHECK_FALSE(main.diff_top);

    const auto& parse = c.functions[1];
    CHECK(parse.label == "ns::parse");
    CHECK(*parse.perfect_share == doctest::Approx(0.42));
    CHECK(*parse.edge_accuracy == 1);
    CHECK(*parse.diff_top == 0);
    CHECK_FALSE(parse.path_accuracy);  // no path begins there
    CHECK_FALSE(parse.call_overlap);   // it calls nothing

    // Code made at run time has no functions.
    CHECK(c.functions[2].label == "in no known function");
    CHECK(c.functions[2].module == "[runtime code]");
}

TEST_CASE("the order of a file, its modules and locations does not matter") {
    const auto expected = to_json(comparison_of(partial_profile(), sample_profile()));
    for (std::uint32_t seed = 1; seed <= 20; ++seed)
        CHECK(to_json(comparison_of(shuffled(partial_profile(), seed),
                                    shuffled(sample_profile(), seed + 100))) == expected);
}

TEST_CASE("ties go by place, whatever the files' order") {
    // Two equal paths; the perfect profile's top 5 % is the first by place, the sample's too.
    auto p = sample_profile();
    p.find<PathSection>()->entries[0].statistics.count = 40;
    p.find<PathSection>()->entries[1].statistics.count = 40;
    p.find<PathSection>()->totals.unknown = 20;
    for (std::uint32_t seed = 1; seed <= 10; ++seed)
        CHECK(comparison_of(shuffled(p, seed), p).paths.measure->accuracy.value == 1);
}

TEST_CASE("what is missing is told, measure by measure") {
    auto s = sample_profile();
    s.remove<PathSection>();
    s.find<EdgeSection>()->entries.clear();
    s.find<EdgeSection>()->totals.unknown = 100;
    for (auto& e : s.find<ValueSection>()->entries) e.context.reset();
    auto p = sample_profile();
    p.remove<PathSection>();
    p.remove<CallSection>();
    const auto c = comparison_of(s, p);
    CHECK(c.paths.why_not == "no paths in s.json or p.json: profile with -p path");
    CHECK(c.edges.why_not == "there are no edges in s.json");
    CHECK(c.calls.why_not == "no calls in p.json: profile with -p call");
    CHECK(c.values.why_not == "values are told apart by return address in p.json only");
    CHECK(c.methods.measure);

    auto other_operands = sample_profile();
    for (auto& e : other_operands.find<ValueSection>()->entries) e.operand_index += 10;
    CHECK(comparison_of(other_operands, sample_profile()).values.why_not ==
          "no operand is in both profiles");

    auto no_instructions = sample_profile();
    no_instructions.coverage.instructions = 0;
    CHECK(comparison_of(sample_profile(), no_instructions).coverage.why_not ==
          "p.json has no instructions");
}

TEST_CASE("profiles with nothing to compare") {
    Profile empty;
    empty.run.mode = "burst";
    CHECK(why_not(empty, sample_profile(), ExitStatus::incomparable) ==
          "cannot compare s.json with p.json: s.json is empty: nothing was seen");
    CHECK(why_not(sample_profile(), empty, ExitStatus::incomparable) ==
          "cannot compare s.json with p.json: p.json is empty: nothing was seen");

    auto only_paths = sample_profile(), only_edges = sample_profile();
    only_paths.remove<EdgeSection>();
    only_edges.remove<PathSection>();
    for (auto* p : {&only_paths, &only_edges}) {
        p->remove<CallSection>();
        p->remove<MethodSection>();
        p->remove<ValueSection>();
    }
    CHECK(why_not(only_paths, only_edges, ExitStatus::incomparable) ==
          "cannot compare s.json with p.json: no kind of profile is in both (see -p)");
    only_paths.find<PathSection>()->entries.clear();
    only_paths.find<PathSection>()->totals.unknown = 100;
    CHECK(why_not(only_paths, sample_profile(), ExitStatus::incomparable) ==
          "cannot compare s.json with p.json: no hotlist has entries in both");

    auto twice = sample_profile();
    twice.find<EdgeSection>()->entries[3] = twice.find<EdgeSection>()->entries[2];
    CHECK(why_not(sample_profile(), twice, ExitStatus::error) ==
          "p.json: edges has the same entry twice");
}

TEST_CASE("what a reader of the figures must know") {
    const auto has_note = [](const Comparison& c, std::string_view part) {
        return std::any_of(c.notes.begin(), c.notes.end(),
                           [&](const std::string& n) { return n.find(part) != n.npos; });
    };
    auto exhaustive = sample_profile();
    exhaustive.find<PathSection>()->totals.exhaustive =
        exhaustive.find<EdgeSection>()->totals.exhaustive =
            exhaustive.find<CallSection>()->totals.exhaustive =
                exhaustive.find<MethodSection>()->totals.exhaustive =
                    exhaustive.find<ValueSection>()->totals.exhaustive = true;
    const auto quiet = comparison_of(sample_profile(), exhaustive);
    CHECK_FALSE(has_note(quiet, "is itself a sample"));
    CHECK_FALSE(has_note(quiet, "differ"));
    CHECK_FALSE(has_note(quiet, "--limit"));
    CHECK_FALSE(has_note(quiet, "more instructions"));
    CHECK(has_note(quiet, "[runtime code]"));

    CHECK(has_note(comparison_of(sample_profile(), sample_profile()), "p.json is itself a sample"));
    CHECK(has_note(comparison_of(exhaustive, partial_profile()),
                   "s.json has more instructions than p.json"));
    CHECK(has_note(comparison_of(partial_profile(), exhaustive), "--limit 0 keeps all"));
    auto other_input = sample_profile();
    other_input.targets[0].command.back() = "other";
    CHECK(has_note(comparison_of(other_input, exhaustive), "the commands differ"));
}

TEST_CASE("the whole comparison") {
    const auto c = comparison_of(partial_profile(), sample_profile());
    CompareTextOptions options;
    options.functions = true;
    check_golden("compare.txt", render_comparison(c, options));
    options.functions = false;
    options.width = 60;
    check_golden("compare_narrow.txt", render_comparison(c, options));
    check_golden("compare.json", to_json(c));
}

TEST_CASE("a comparison is as wide as it may be, and no wider") {
    auto wide = sample_profile();
    for (auto& l : wide.locations) {
        l.function = "中文::" + std::string(200, 'x') + "<größe>::" + l.function;
        l.file = "/src/" + std::string(150, 'y') + "ß.cpp";
    }
    wide.targets[0].command = {"./app", std::string(500, 'z') + "\x1b[2J"};
    const auto c = compare({"s\x1b[2J.json", partial_profile()}, {std::string(200, 'p'), wide});
    for (std::size_t width = 40; width <= 200; width += 5)
        for (const bool functions : {false, true}) {
            CompareTextOptions options;
            options.width = width;
            options.functions = functions;
            std::istringstream lines(render_comparison(c, options));
            for (std::string line; std::getline(lines, line);) {
                CAPTURE(line);
                CHECK(columns_of(line) <= width);
                CHECK(line.find('\x1b') == line.npos);
                CHECK((line.empty() || line.back() != ' '));
            }
        }
}

// Any number and any index of the file may be another one.
TEST_CASE("whatever profile was read can be compared") {
    const auto original = nlohmann::json::parse(to_json(sample_profile()));
    std::vector<nlohmann::json::json_pointer> numbers;
    const auto flat = original.flatten();
    for (const auto& [key, value] : flat.items())
        if (value.is_number_unsigned()) numbers.emplace_back(key);

    std::mt19937 random(1);
    const auto below = [&](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    int read = 0;
    for (int round = 0; round < 3000; ++round) {
        auto broken = original;
        for (auto n = 1 + below(3); n > 0; --n) {
            const auto& where = numbers[below(numbers.size())];
            const std::uint64_t values[] = {0, below(10), below(100), UINT64_MAX};
            broken[where] = values[below(4)];
        }
        for (const char* list : {"paths", "edges", "calls", "methods"})
            if (below(4) == 0) {  // all other invariants kept, for more of them to be read
                auto& l = broken[list];
                const auto kept = below(l["entries"].size() + 1);
                l["entries"].get_ref<nlohmann::json::array_t&>().resize(kept);
                l["dropped"] = below(2) == 0 ? below(5) : UINT64_MAX / 2;
                std::uint64_t known = 0;
                for (const auto& e : l["entries"]) known += e["count"].get<std::uint64_t>();
                const auto total = l["total"].get<std::uint64_t>();
                l["unknown"] = total - std::min(total, known);
            }
        Profile p;
        try {
            p = profile::from_json(broken.dump());
        } catch (const JsonError&) {
            continue;
        }
        ++read;
        for (const bool as_sampled : {false, true}) {
            try {
                const auto c = as_sampled ? comparison_of(p, sample_profile())
                                          : comparison_of(sample_profile(), p);
                const auto json = nlohmann::json::parse(to_json(c));
                for (const char* key : {"path_accuracy", "edge_accuracy", "diff_top",
                                        "call_overlap", "method_overlap"}) {
                    if (json[key]["value"].is_null()) continue;
                    const double value = json[key]["value"];
                    CHECK(value >= json[key]["bounds"][0].get<double>());
                    CHECK(value <= json[key]["bounds"][1].get<double>());
                    CHECK(json[key]["bounds"][0].get<double>() >= 0);
                    CHECK(json[key]["bounds"][1].get<double>() <= 1);
                }
                CHECK(is_utf8(render_comparison(c)));
            } catch (const UserError&) {  // the same entry twice, or nothing in common
            }
        }
    }
    CHECK(read > 100);
}

}  // namespace shadowprof::report
