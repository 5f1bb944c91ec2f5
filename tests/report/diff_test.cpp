#include "report/diff/diff.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/diff/change.h"
#include "report/diff/diff_json.h"
#include "report/diff/diff_text.h"
#include "report/diff/gate.h"
#include "sample_profile.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

// A program of which all was counted: parse and print, and what main does itself.
Profile counted_run(std::uint64_t parse, std::uint64_t print, std::string build = "aa",
                    std::uint64_t moved = 0) {
    Profile p;
    p.tool = "shadowprof 0.1.0";
    p.host = {"CPU", 2, "6.1"};
    p.targets = {{{"/bin/app", "x"}, 1, 0, false}};
    p.run.mode = "full";
    p.run.profiles = {"method", "edge"};
    p.modules = {{"/bin/app", std::move(build)}};
    const auto add = [&](std::string name, std::uint64_t offset, std::uint64_t into,
                         std::uint32_t line) {
        Location l;
        l.function = std::move(name);
        l.function_offset = offset + moved;
        l.offset = offset + into + moved;
        l.file = "/src/app.c";
        l.line = line + static_cast<std::uint32_t>(moved / 16);
        p.locations.push_back(l);
    };
    add("main", 0x1000, 0, 10);
    add("parse", 0x2000, 0, 30);
    add("print(int)", 0x3000, 0, 50);
    add("parse", 0x2000, 0x8 + moved / 4, 33);
    const auto total = parse + print + 1000;
    p.coverage = {1, total, total / 5, {{"exit", 1}}, {}};
    auto& methods = p.add<MethodSection>();
    methods.totals = everything(3);
    methods.instructions = everything(total);
    methods.entries = {{0, exactly(1, 3), 1, 0, 0, exactly(1000, total)},
                       {1, exactly(1, 3), 1, 0, 0, exactly(parse, total)},
                       {2, exactly(1, 3), 1, 0, 0, exactly(print, total)}};
    auto& edges = p.add<EdgeSection>();
    edges.totals = everything(parse + 7);
    edges.entries = {{3, 1, EdgeKind::taken, exactly(parse, parse + 7)},
                     {0, 2, EdgeKind::call, exactly(7, parse + 7)}};
    REQUIRE(!defect_of(p));
    return p;
}

std::vector<NamedProfile> baselines(std::initializer_list<std::uint64_t> parse) {
    std::vector<NamedProfile> all;
    for (const auto n : parse)
        all.push_back({"base" + std::to_string(all.size()), counted_run(n, 100'000)});
    return all;
}

GateResult checked(const std::vector<NamedProfile>& bases, const Profile& now,
                   const char* instructions, const char* any_function = nullptr,
                   const char* function = nullptr) {
    GateLimits limits;
    if (instructions) limits.instructions = parse_allowance(instructions);
    if (any_function) limits.any_function = parse_allowance(any_function);
    if (function) limits.functions.push_back(parse_function_limit(function));
    return check_limits(diff(bases, {"new", now}), limits);
}

template <class Act>
std::string why_not(Act act, ExitStatus expected) {
    try {
        act();
    } catch (const UserError& e) {
        CHECK(e.status() == expected);
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("with one baseline that was counted every difference is real") {
    const Amount before{100, 100, 100}, after{101, 101, 101};
    const auto c = change_of("f", {&before}, {{}}, &after, {});
    CHECK(c.noise == 0);
    CHECK(c.is_real());
    CHECK(!change_of("f", {&before}, {{}}, &before, {}).is_real());
}

TEST_CASE("several baselines tell how much runs vary") {
    const Amount a{99, 99, 99}, b{100, 100, 100}, c{101, 101, 101}, d{105, 105, 105};
    const std::vector<Absence> never(3);
    // s = 1, t(2; 0.9995) = 31.6, sqrt(1 + 1/3) = 1.155
    const auto change = change_of("f", {&a, &b, &c}, never, &d, {});
    CHECK(change.base == doctest::Approx(100));
    CHECK(change.noise == doctest::Approx(31.599 * 1.1547).epsilon(1e-4));
    CHECK(!change.is_real());
    const std::vector<const Amount*> many{&a, &b, &c, &a, &b, &c, &a, &b, &c, &b};
    const auto surer = change_of("f", many, std::vector<Absence>(10), &d, {});
    CHECK(surer.noise == doctest::Approx(4.781 * 0.8165 * 1.0488).epsilon(1e-3));
    CHECK(surer.is_real());
}

TEST_CASE("estimated shares differ if they are apart by more than both errors") {
    const Amount a{0.20, 0.18, 0.22}, b{0.24, 0.22, 0.26}, c{0.26, 0.24, 0.28};
    CHECK(!change_of("f", {&a}, {{}}, &b, {}).is_real());
    CHECK(change_of("f", {&a}, {{}}, &c, {}).is_real());
}

TEST_CASE("what is in few samples may be missing from others") {
    const Amount rare{0.01, 0.009, 0.011, 0.1};
    CHECK(!change_of("f", {nullptr}, {{{}, 20}}, &rare, {}).is_real());
    CHECK(change_of("f", {nullptr}, {{{}, 200}}, &rare, {}).is_real());
    CHECK(!change_of("f", {&rare}, {{}}, nullptr, {{}, 20}).is_real());
    CHECK(change_of("f", {&rare}, {{}}, nullptr, {{}, 200}).is_real());
    // Counted ones are there or not, unless a limit has dropped what is as small.
    CHECK(change_of("f", {nullptr}, {{}}, &rare, {}).is_real());
    CHECK(!change_of("f", {nullptr}, {{{0, 0, 0.02, 1}, 0}}, &rare, {}).is_real());
}

TEST_CASE("with few samples on one side nothing is said to have changed") {
    // As "waiting -48.6 % (noise ±45 %)", of 48 samples and 20.
    const Amount many{100, 90, 110, 1, 48}, few{51, 48, 54, 1, 20}, enough{51, 48, 54, 1, 31};
    const auto change = change_of("f", {&many}, {{}}, &few, {});
    CHECK(change.has_too_few_samples);
    CHECK(!change.is_real());
    CHECK(!change_of("f", {&few}, {{}}, &many, {}).is_real());
    CHECK(change_of("f", {&many}, {{}}, &enough, {}).is_real());
    CHECK(change_of("f", {&few, &few}, {{}, {}}, &enough, {}).has_too_few_samples == false);
    CHECK(!change_of("f", {nullptr}, {{{0, 0, 0, 1, 20}, 20}}, &many, {}).is_real());
}

TEST_CASE("another build of the program: functions and lines are matched, not addresses") {
    const auto d =
        diff({{"base", counted_run(5000, 3000)}}, {"new", counted_run(6000, 3000, "bb", 0x40)});
    REQUIRE(d.instructions);
    CHECK(d.instructions->base == 9000);
    CHECK(d.instructions->now == 10000);
    const auto& functions = d.functions();
    REQUIRE(functions.changes.size() == 3);
    CHECK(functions.changes[0].name == "parse");
    CHECK(functions.changes[0].difference() == 1000);
    CHECK(!functions.changes[1].is_real());
    // The branch is three lines into the function in both.
    const auto& edges = d.lists[2];
    REQUIRE(edges.name == "edges");
    REQUIRE(edges.changes.size() == 2);
    CHECK(edges.changes[0].name == "parse:+3 → parse:+0 (taken)");
    CHECK(edges.changes[0].difference() == 1000);
}

TEST_CASE("the same build: places are matched by offset") {
    const auto d = diff({{"base", counted_run(5000, 3000)}}, {"new", counted_run(6000, 3000)});
    CHECK(d.lists[2].changes[0].name == "parse+0x8 → parse (taken)");
}

TEST_CASE("several runs in one profile count as their mean") {
    auto twice = counted_run(10'000, 6000);
    twice.run.seeds = {1, 2};
    twice.coverage.instructions = 17'000;
    const auto d = diff({{"base", twice}}, {"new", counted_run(5000, 3000)});
    CHECK(d.instructions->base == 8500);
    CHECK(d.functions().changes.front().name == "main");  // 500 a run, as the totals say
    CHECK(!d.functions().changes.back().is_real());
}

TEST_CASE("a gate fails on what is beyond limit and noise, and says where it comes from") {
    const auto bases = baselines({100'000, 100'020, 99'980, 100'010, 99'990});
    const auto passed = checked(bases, counted_run(100'030, 100'000), "+0.5%", "+1%");
    CHECK(passed.passed());
    CHECK(passed.functions_checked == 3);

    const auto failed = checked(bases, counted_run(103'000, 100'000), "+1%");
    CHECK(!failed.passed());
    REQUIRE(failed.verdicts.size() == 1);
    REQUIRE(failed.verdicts[0].causes.size() == 1);
    CHECK(failed.verdicts[0].causes[0].name == "parse");
    CHECK(failed.verdicts[0].allowed == doctest::Approx(201'000 * 1.01));

    // Within the noise of a program that varies this much.
    const auto noisy = baselines({100'000, 110'000, 90'000, 105'000, 95'000});
    CHECK(checked(noisy, counted_run(103'000, 100'000), "+1%").passed());
    // Not more than the limit: not beyond it.
    CHECK(checked(baselines({100'000}), counted_run(102'010, 100'000), "+1%").passed());
    CHECK(!checked(baselines({100'000}), counted_run(102'011, 100'000), "+1%").passed());
    CHECK(checked(baselines({100'000}), counted_run(102'000, 100'000), "+2k").passed());
    CHECK(!checked(baselines({100'000}), counted_run(102'001, 100'000), "+2k").passed());
}

TEST_CASE("limits of functions go by name, pattern, or name without parameters") {
    const auto bases = baselines({100'000});
    const auto slower = counted_run(100'000, 110'000);
    CHECK(!checked(bases, slower, nullptr, nullptr, "print=+5%").passed());
    CHECK(!checked(bases, slower, nullptr, nullptr, "print(int)=+5%").passed());
    CHECK(!checked(bases, slower, nullptr, nullptr, "p*=+5%").passed());
    CHECK(checked(bases, slower, nullptr, nullptr, "p*=+15%").passed());
    CHECK(checked(bases, slower, nullptr, nullptr, "parse=+0%").passed());
    CHECK(checked(bases, slower, nullptr, nullptr, "p*=+5%").verdicts.size() == 2);
    CHECK(contains(
        why_not([&] { checked(bases, slower, nullptr, nullptr, "gone=+5%"); }, ExitStatus::error),
        "no function in these profiles is called gone"));
    CHECK(!checked(bases, slower, nullptr, "+9%").passed());
    CHECK(checked(bases, slower, nullptr, "+11%").passed());
}

TEST_CASE("limits that are none are bad usage") {
    for (const auto* text : {"", "+", "%", "x", "-1%", "nan%", "inf", "1%%", "+1e3", "1 %", "0x1"})
        CHECK(contains(why_not([&] { parse_allowance(text); }, ExitStatus::bad_usage),
                       "is no limit"));
    for (const auto* text : {"", "name", "=+1%", "name=", "name=x"})
        CHECK(contains(why_not([&] { parse_function_limit(text); }, ExitStatus::bad_usage),
                       "is no limit"));
    CHECK(parse_allowance("2%").of(1000) == doctest::Approx(20));
    CHECK(parse_allowance("+1.5M").of(0) == 1.5e6);
    CHECK(parse_function_limit("operator===+5%").pattern == "operator==");
}

TEST_CASE("what cannot be compared is refused") {
    const auto refused = [](auto change, const char* why) {
        auto p = counted_run(100, 100);
        change(p);
        const auto said = why_not(
            [&] {
                diff({{"base", counted_run(100, 100)}}, {"new", p});
            },
            ExitStatus::incomparable);
        CAPTURE(said);
        CHECK(contains(said, why));
    };
    refused([](Profile& p) { p.run.mode = "burst"; }, "mode full, the other in mode burst");
    refused([](Profile& p) { p.targets[0].command[0] = "/bin/other"; }, "different programs");
    refused([](Profile& p) { p.targets[0].exit = 1; }, "status 0, and then with 1");
    refused([](Profile& p) { p.host.cpu = "other"; }, "different processors");
    refused([](Profile& p) { p.run.interrupted = "SIGINT"; }, "cut short by SIGINT");
    refused([](Profile& p) { p = Profile(); }, "is empty");

    auto other = counted_run(100, 100);
    other.host.cpu = "other";
    CHECK(!diff({{"base", counted_run(100, 100)}}, {"new", other}, {true}).notes.empty());

    const std::vector<NamedProfile> sampled{{"base", partial_profile()}};
    CHECK(contains(
        why_not([&] { checked(sampled, partial_profile(), "+1%"); }, ExitStatus::incomparable),
        "samples do not tell how many"));
    CHECK(contains(why_not([&] { checked(sampled, partial_profile(), nullptr, "+10k"); },
                           ExitStatus::incomparable),
                   "samples do not tell how many"));
    auto without = counted_run(100, 100);
    without.remove<MethodSection>();
    CHECK(contains(why_not(
                       [&] {
                           checked({{"base", without}}, without, nullptr, "+1%");
                       },
                       ExitStatus::incomparable),
                   "profile with -p method"));
}

namespace {

// Loads of parse and of print, timed in samples of which each adds what it is told.
Profile timed_run(std::vector<std::uint64_t> parse, std::uint64_t print, std::uint64_t moved = 0) {
    auto p = counted_run(1'000'000, 100'000, moved ? "bb" : "aa", moved);
    p.run.profiles.push_back("latency");
    auto& list = p.add<LatencySection>();
    list.scale.clock_is_usable = true;
    list.entries.resize(2);
    list.entries[0].location = 3;
    list.entries[1].location = 2;
    for (const auto ns : parse) {
        list.totals.add_sample(ns + print);
        list.entries[0].statistics.add_sample(ns, ns + print);
        list.entries[1].statistics.add_sample(print, ns + print);
    }
    list.totals.unknown = 0;
    for (auto& e : list.entries) {
        e.timed = 10;
        e.loads = 1000;
        e.picoseconds = static_cast<std::int64_t>(e.statistics.count) * 1000;
        e.histogram[5] = e.by_time[0] = 10;
        list.loads += 1000;
    }
    REQUIRE(!defect_of(p));
    return p;
}

GateResult checked_latency(const std::vector<NamedProfile>& bases, const Profile& now,
                           const char* limit) {
    GateLimits limits;
    limits.latencies.push_back(parse_latency_limit(limit));
    return check_limits(diff(bases, {"new", now}), limits);
}

}  // namespace

TEST_CASE("latencies: what loads wait, in 1,000 instructions, of all and of each function") {
    // So many samples that parse is known to be slower, although all of them agree.
    const auto before = timed_run(std::vector<std::uint64_t>(200, 100), 20);
    const auto after = timed_run(std::vector<std::uint64_t>(200, 140), 20, 0x40);
    const auto d = diff({{"base", before}}, {"new", after});
    REQUIRE(d.waiting);
    // 24,000 ns of 20 timed loads stand for 100 times that; 1,101,000 instructions.
    CHECK(d.waiting->base == doctest::Approx(1000.0 * 2'400'000 / 1'101'000));
    CHECK(d.waiting->now == doctest::Approx(1000.0 * 3'200'000 / 1'101'000));
    CHECK(d.waiting->is_real());
    const auto& functions = d.waiting_of_functions();
    CHECK(functions.name == "waiting");
    REQUIRE(functions.why_not.empty());
    CHECK(functions.changes[0].name == "parse");
    CHECK(functions.changes[0].base == doctest::Approx(1000.0 * 2'000'000 / 1'101'000));
    CHECK(functions.changes[0].now == doctest::Approx(1000.0 * 2'800'000 / 1'101'000));
    CHECK(d.lists[5].name == "loads");
    CHECK(d.lists[5].changes[0].name == "parse:+3");

    const auto result = checked_latency({{"base", before}}, after, "+10%");
    CHECK(!result.passed());
    REQUIRE(result.verdicts[0].causes.size() == 1);
    CHECK(result.verdicts[0].causes[0].name == "parse");
    CHECK(checked_latency({{"base", before}}, after, "+50%").passed());
    CHECK(!checked_latency({{"base", before}}, after, "parse=+30%").passed());
    CHECK(checked_latency({{"base", before}}, after, "parse=+50%").passed());
    CHECK(checked_latency({{"base", before}}, after, "print=+1%").passed());
    CHECK(contains(why_not(
                       [&] {
                           checked_latency({{"base", before}}, after, "scan=+1%");
                       },
                       ExitStatus::error),
                   "no function in these profiles is called scan"));
    const auto text = render_diff(d, nullptr, {});
    CHECK(contains(text, "Waiting    2180 ns to 2906 ns in 1,000 instructions: +33.3 %"));
    CHECK(contains(render_diff_markdown(d, nullptr, 5), "changed loads"));
    CHECK(nlohmann::json::parse(to_json(d, nullptr))["total_waiting"]["real"] == true);
}

TEST_CASE("latencies vary from sample to sample, and from run to run") {
    const auto before = timed_run({2000, 8000, 3000, 7000}, 1000);
    const auto after = timed_run({7000, 7000, 7000, 7000}, 1000);
    const auto few = diff({{"base", before}}, {"new", after});
    CHECK(!few.waiting->is_real());
    const auto text = render_diff(few, nullptr, {});
    CHECK(contains(text, "too few samples to compare them"));
    CHECK(contains(text, "with fewer than 30 samples on one side no change is told of waiting"));
    CHECK(checked_latency({{"base", before}}, after, "+1%").passed());
    std::vector<NamedProfile> bases;
    for (const std::uint64_t ns : {4000, 5000, 6000})
        bases.push_back({"base", timed_run({ns, ns, ns}, 1000)});
    CHECK(checked_latency(bases, after, "+1%").passed());
}

TEST_CASE("latencies that are not there cannot be compared") {
    const auto timed = timed_run({5000, 5000}, 1000);
    auto untimed = timed;
    untimed.remove<LatencySection>();
    CHECK(contains(why_not(
                       [&] {
                           checked_latency({{"base", timed}}, untimed, "+10%");
                       },
                       ExitStatus::incomparable),
                   "no waiting in new: profile with -p latency"));
    untimed = timed;
    untimed.add<LatencySection>() = LatencySection{};
    untimed.find<LatencySection>()->scale.why_not = "the clock stops";
    CHECK(contains(why_not(
                       [&] {
                           checked_latency({{"base", timed}}, untimed, "+10%");
                       },
                       ExitStatus::incomparable),
                   "new: the clock stops"));
    CHECK(contains(why_not([] { parse_latency_limit("+10"); }, ExitStatus::bad_usage),
                   "give a percentage"));
    CHECK(parse_latency_limit("ns::f=+5%").pattern == "ns::f");
}

TEST_CASE("values whose distribution changed") {
    auto a = sample_profile();
    for (auto* t :
         {&a.find<ValueSection>()->totals, &a.find<ValueSection>()->entries[0].executions})
        t->exhaustive = true;
    a.find<ValueSection>()->entries[0].probability_inverse = 1;
    auto b = a;
    auto& top = b.find<ValueSection>()->entries[0].top;
    top = {{7, {2, 70, 3000, 4000}}, {2, {2, 28, 500, 1500}}};
    const auto d = diff({{"base", a}}, {"new", b});
    REQUIRE(d.values.size() == 1);
    CHECK(d.values[0].operand == "eax");
    CHECK(d.values[0].base_value == "0x2");
    CHECK(d.values[0].now_value == "0x7");
    CHECK(d.values[0].base_share == doctest::Approx(0.9));
    CHECK(d.values[0].now_share == doctest::Approx(0.28));
    CHECK(diff({{"base", a}}, {"new", a}).values.empty());

    // Addresses move; only how constant they are says something.
    for (auto* p : {&a, &b})
        for (auto& v : p->find<ValueSection>()->entries[0].top) v.value += 0x555500000000;
    for (auto* p : {&a, &b}) p->find<ValueSection>()->entries[0].bits = 64;
    const auto moved = diff({{"base", a}}, {"new", b});
    REQUIRE(moved.values.size() == 1);
    CHECK(moved.values[0].is_address);
    CHECK(moved.values[0].now_share == doctest::Approx(0.7));
}

TEST_CASE("a diff as text, Markdown and JSON") {
    const auto bases = baselines({100'000, 100'020, 99'980, 100'010, 99'990});
    const auto d = diff(bases, {"new|er", counted_run(103'000, 100'000)});
    GateLimits limits;
    limits.instructions = parse_allowance("+1%");
    const auto gate = check_limits(d, limits);

    const auto text = render_diff(d, &gate);
    CHECK(contains(text, "EXCEEDED   instructions: 201k to 204k, +1.49 %"));
    CHECK(contains(text, "most in parse +1.49 %"));
    CHECK(contains(text, "beyond the limits"));
    CHECK(!contains(render_diff(d, nullptr), "limit"));
    // A section for what has changed; and of the rest a line.
    CHECK(contains(text, "Changed functions (1 of 3;"));
    CHECK(!contains(text, "Changed calls"));
    CHECK(!contains(text, "Changed values"));
    CHECK(contains(text, "Missing    no calls in base0: profile with -p call"));
    const auto same = render_diff(diff(bases, {"new", counted_run(100'000, 100'000)}), nullptr);
    CHECK(!contains(same, "Changed"));
    CHECK(contains(same, "Unchanged  functions (3), edges (2)"));
    const auto hardly = render_diff(diff({{"base", counted_run(26'000'000'000, 1000)}},
                                         {"new", counted_run(26'000'000'100, 1000)}),
                                    nullptr);
    CHECK(!contains(hardly, "0.0000 %"));
    CHECK(contains(hardly, "+<0.0001 %"));

    const auto markdown = render_diff_markdown(d, &gate);
    CHECK(contains(markdown, "### ❌ Performance gate: beyond the limits"));
    CHECK(contains(markdown, "new\\|er against 5 baselines"));
    CHECK(contains(markdown, "| parse | 100k | 103k | +3.00 % |"));

    const auto json = nlohmann::json::parse(to_json(d, &gate));
    CHECK(json["passed"] == false);
    CHECK(json["verdicts"][0]["causes"][0]["name"] == "parse");
    CHECK(json["instructions"]["new"] == 204'000);
    CHECK(json["functions"]["changes"].size() == 1);

    const auto github = nlohmann::json::parse(to_github_action_benchmark(d, 0.1));
    REQUIRE(github.size() == 3);
    CHECK(github[0]["name"] == "app");
    CHECK(github[0]["unit"] == "instructions");
    CHECK(github[0]["value"] == 204'000);
    CHECK(github[1]["name"] == "app: parse");
    const auto bencher = nlohmann::json::parse(to_bencher(d, 0.1));
    CHECK(bencher["app"]["instructions"]["value"] == 204'000);
    CHECK(bencher["app: parse"]["instructions"]["lower_value"] < 103'000);
}

TEST_CASE("any two profiles of a program yield pages of any width") {
    const auto d = diff({{"a", sample_profile()}}, {"b", sample_profile()});
    for (std::size_t width = 0; width < 130; width += 13) {
        DiffTextOptions options;
        options.width = width;
        CHECK(!render_diff(d, nullptr, options).empty());
    }
    CHECK(nlohmann::json::accept(to_json(d, nullptr)));
}

}  // namespace shadowprof::report
