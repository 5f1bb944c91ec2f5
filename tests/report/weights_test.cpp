// Whatever shows a profile in stacks shows time where the clock looked, and the shares of its
// table.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "pprof_reader.h"
#include "report/exports/exports.h"
#include "report/page/page.h"
#include "report/text/format.h"
#include "report/views/chapters.h"
#include "report/views/flame_tree.h"
#include "report/views/weight.h"
#include "sample_profile.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

std::string exported(std::string_view format, const Profile& p,
                     std::optional<Weight> weight = std::nullopt) {
    ExportOptions options;
    options.weight = weight;
    for (const auto& e : exporters())
        if (e.name == format) return e.run(p, options).text;
    FAIL("no such format");
    return {};
}

std::string why_not(std::string_view format, const Profile& p,
                    std::optional<Weight> weight = std::nullopt) {
    try {
        exported(format, p, weight);
    } catch (const UserError& e) {
        return e.what();
    }
    return "";
}

// Stacks of every kind: of two threads, of a function that calls itself by way of another, cut off,
// in the kernel, and unknown. Instructions are elsewhere, so that nobody confuses the two.
Profile looked_at() {
    Profile p;
    p.tool = "shadowprof 0.1.0";
    p.targets = {{{"/bin/app"}, 42, 0, false}};
    p.run.started = "2026-01-02T03:04:05Z";
    p.run.duration = 2.5;
    p.modules = {{"/bin/app", "aa"}};
    // The entry of each, and then a place of return in each.
    const std::vector<std::string> names{"main", "parse", "visit", "leaf", "start_thread"};
    for (const bool is_return : {false, true})
        for (std::size_t n = 0; n < names.size(); ++n) {
            Location l;
            l.function = names[n];
            l.function_offset = 0x1000 * n;
            l.offset = *l.function_offset + (is_return ? 0x10 : 0);
            l.return_address = is_return;
            // An entry may have no line, or that of what was expanded there.
            if (n != 1 || is_return) l.file = "app.c";
            l.line = static_cast<std::uint32_t>(10 * n + is_return);
            if (n == 3) l.inlined = {{"expanded", "app.c", 7}};
            p.locations.push_back(l);
        }
    enum : LocationIndex {
        main,
        parse,
        visit,
        leaf,
        start,
        in_main,
        in_parse,
        in_visit,
        in_leaf,
        in_start
    };
    auto& time = p.add<TimeSection>();
    const auto look = [&](std::string thread, profile::ThreadState state, std::string call,
                          std::vector<LocationIndex> frames, std::uint64_t nanoseconds) {
        Statistics s;
        s.add_sample(nanoseconds, nanoseconds);
        time.totals.add_sample(nanoseconds);
        time.entries.push_back(
            {std::move(thread), state, std::move(call), std::move(frames), s, {}});
    };
    using enum profile::ThreadState;
    look("app", user, "", {leaf, in_parse, in_main}, 3000);
    look("app", user, "", {parse, in_main}, 1500);
    look("app", kernel, "read", {parse, in_main}, 500);
    look("app", user, "", {leaf, in_visit, in_parse, in_visit, in_main}, 2000);
    look("app", user, "", {visit, in_parse, in_visit, in_main}, 700);
    look("pool", user, "", {visit, in_start}, 1000);
    look("pool", user, "", {leaf}, 200);  // cut off
    look("pool", user, "", {}, 60);
    time.totals.add_sample(40);
    time.totals.unknown = 40;
    p.add<MethodSection>();
    p.find<MethodSection>()->totals = everything(10);
    p.find<MethodSection>()->instructions = everything(1000);
    p.find<MethodSection>()->entries = {{main, exactly(5, 10), 5, 0, 0, exactly(900, 1000)},
                                        {leaf, exactly(5, 10), 5, 0, 0, exactly(60, 1000)}};
    p.find<MethodSection>()->instructions.unknown = 40;
    p.coverage.weighted_instructions = 1000;
    REQUIRE(!defect_of(p));
    return p;
}

struct Shares {
    std::map<std::string, std::uint64_t> self, with_callees;
    std::uint64_t total = 0;

    void add(const std::vector<std::string>& outermost_first, std::uint64_t weight) {
        total += weight;
        self[outermost_first.back()] += weight;
        for (const auto& name : std::set(outermost_first.begin(), outermost_first.end()))
            with_callees[name] += weight;
    }
};

// What the profile's table says, function by function.
void check_table(const Profile& p, Shares shares) {
    CHECK(shares.total == p.find<TimeSection>()->totals.total);
    const auto whole = static_cast<double>(shares.total);
    std::size_t rows = 0;
    for (const auto& chapter : chapters_of(p, 100))
        for (const auto& table : chapter.tables) {
            if (table.key != "time") continue;
            for (const auto& row : table.rows) {
                const auto cell = [&](std::string_view key) -> const ShownCell& {
                    for (std::size_t c = 0; c < table.columns.size(); ++c)
                        if (table.columns[c].key == key) return row.cells[c];
                    FAIL("no such column");
                    return row.cells[0];
                };
                const auto name = p.at(std::get<ShownPlace>(cell("at")).at).function;
                CAPTURE(name);
                CHECK(shares.self[name] == row.count);
                CHECK(static_cast<double>(shares.with_callees[name]) / whole ==
                      doctest::Approx(std::get<double>(cell("with_callees"))));
                ++rows;
            }
        }
    CHECK(rows == 5);
}

// As callgrind_annotate reads them: calls=0 announces nothing, and what a function costs with all
// that it calls is what its callers are told to pay.
Shares read_callgrind(const std::string& text) {
    Shares shares;
    std::map<std::string, std::uint64_t> in_calls, of_itself;
    std::istringstream lines{text};
    std::string function, callee;
    std::uint64_t calls = 0, summary = 0;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("fn="))
            function = line.substr(3);
        else if (line.starts_with("cfn="))
            callee = line.substr(4);
        else if (line.starts_with("calls="))
            calls = std::stoull(line.substr(6));
        else if (line.starts_with("summary: "))
            summary = std::stoull(line.substr(9));
        else if (!line.empty() && line[0] >= '0' && line[0] <= '9') {
            const auto cost = std::stoull(line.substr(line.find(' ')));
            of_itself[function] += cost;
            if (calls == 0) {
                shares.self[function] += cost;
                shares.total += cost;
            } else {
                in_calls[callee] += cost;
            }
            calls = 0;
        }
    }
    CHECK(summary == shares.total);
    shares.with_callees = std::move(of_itself);
    for (const auto& [name, cost] : in_calls) shares.with_callees[name] = cost;
    return shares;
}

}  // namespace

TEST_CASE("time is what stacks are weighted by where the clock looked") {
    const auto p = sample_profile();
    CHECK(weight_for(p, {}) == Weight::time);
    CHECK(exported("collapsed", p) ==
          "[unknown] 5\n"
          "main 25\n"
          "main;ns::parse<int>(std::string const&) 70\n");
    CHECK(exported("collapsed", p, Weight::time) == exported("collapsed", p));
    CHECK(exported("collapsed", p, Weight::instructions) != exported("collapsed", p));
    auto without = p;
    without.remove<TimeSection>();
    CHECK(weight_for(without, {}) == Weight::instructions);
    CHECK(exported("collapsed", without) == exported("collapsed", p, Weight::instructions));
    CHECK(contains(why_not("collapsed", without, Weight::time), "--weight instructions"));
}

TEST_CASE("collapsed: the shares of the table of time") {
    const auto p = looked_at();
    Shares shares;
    std::istringstream lines{exported("collapsed", p)};
    for (std::string line; std::getline(lines, line);) {
        const auto space = line.rfind(' ');
        std::vector<std::string> stack;
        std::istringstream frames{line.substr(0, space)};
        for (std::string frame; std::getline(frames, frame, ';');) stack.push_back(frame);
        shares.add(stack, std::stoull(line.substr(space)));
    }
    check_table(p, shares);
}

TEST_CASE("speedscope: the shares of the table of time, in nanoseconds") {
    const auto p = looked_at();
    const auto json = nlohmann::json::parse(exported("speedscope", p));
    const auto& profile = json["profiles"][0];
    CHECK(profile["name"] == "time");
    CHECK(profile["unit"] == "nanoseconds");
    Shares shares;
    for (std::size_t i = 0; i < profile["samples"].size(); ++i) {
        std::vector<std::string> stack;
        for (const auto& frame : profile["samples"][i])
            stack.push_back(json["shared"]["frames"][frame.get<std::size_t>()]["name"]);
        shares.add(stack, profile["weights"][i]);
    }
    CHECK(profile["endValue"] == shares.total);
    check_table(p, shares);
    const auto other =
        nlohmann::json::parse(exported("speedscope", p, Weight::instructions))["profiles"][0];
    CHECK(other["name"] == "instructions");
    CHECK(other["unit"] == "none");
    CHECK(other["endValue"] == 1000);
}

TEST_CASE("callgrind: the shares of the table of time, with what is called") {
    const auto p = looked_at();
    const auto text = exported("callgrind", p);
    CHECK(contains(text, "\nevents: ns\nsummary: 9000\n"));
    CHECK(!contains(text, "calls=0"));
    check_table(p, read_callgrind(text));
    // parse is called on line 1 of main, and leaf on line 11 of parse.
    CHECK(contains(text, "cfn=parse\ncalls=1 0\n1 5000\n"));
    CHECK(contains(text, "cfn=leaf\ncalls=1 0\n11 3000\n"));
    CHECK(contains(text, "fn=[unknown callers]\ncob=/bin/app\ncfi=app.c\ncfn=leaf\n"));
}

TEST_CASE("callgrind: instructions that no function is known of are there as well") {
    const auto shares = read_callgrind(exported("callgrind", looked_at(), Weight::instructions));
    CHECK(shares.total == 1000);
    CHECK(shares.self.at("main") == 900);
    CHECK(shares.self.at("[other functions]") == 40);
}

TEST_CASE("pprof: both weights, when it was, and whose stacks they are") {
    const auto p = looked_at();
    const PprofProfile pprof{exported("pprof", p)};
    CHECK(pprof.types == std::vector<std::string>{"instructions/count", "time/nanoseconds"});
    CHECK(pprof.sums() == std::vector<std::uint64_t>{1000, 9000});
    CHECK(pprof.default_type == "time");
    CHECK(pprof.period_type == "time/nanoseconds");
    CHECK(pprof.period == 9000 / 9);
    CHECK(pprof.duration == 2'500'000'000);
    CHECK(pprof.time == 1'767'323'045'000'000'000);
    Shares shares;
    std::map<std::string, std::uint64_t> by_thread, by_call;
    for (const auto& sample : pprof.samples) {
        if (sample.values[1] == 0) continue;
        auto stack = sample.functions;
        std::ranges::reverse(stack);
        shares.add(stack, sample.values[1]);
        CHECK(sample.labels.at("process") == "app");
        CHECK(sample.labels.at("pid") == "42");
        for (const auto& [key, sums] : {std::pair{"thread", &by_thread}, {"system call", &by_call}})
            if (sample.labels.contains(key)) (*sums)[sample.labels.at(key)] += sample.values[1];
    }
    check_table(p, shares);
    CHECK(by_thread == std::map<std::string, std::uint64_t>{{"app", 7700}, {"pool", 1260}});
    CHECK(by_call == std::map<std::string, std::uint64_t>{{"read", 500}});
    CHECK(PprofProfile(exported("pprof", p, Weight::instructions)).default_type == "instructions");
}

TEST_CASE("pprof: a weight that the profile does not have is left out") {
    auto p = looked_at();
    p.remove<MethodSection>();
    p.coverage.weighted_instructions.reset();
    CHECK(PprofProfile(exported("pprof", p)).types == std::vector<std::string>{"time/nanoseconds"});
    p = looked_at();
    p.remove<TimeSection>();
    const PprofProfile counted{exported("pprof", p)};
    CHECK(counted.types == std::vector<std::string>{"instructions/count"});
    CHECK(counted.sums() == std::vector<std::uint64_t>{1000});
    CHECK(counted.period == 0);
}

TEST_CASE("pprof: of several processes each stack has its own") {
    auto p = looked_at();
    for (const auto& [pid, program, part] :
         {std::tuple(42, "/bin/app", 0u), {43, "/bin/tool", 1u}, {44, "/bin/tool", 1u}}) {
        auto& process = p.processes.emplace_back();
        process.pid = pid;
        process.program = program;
        process.part = part;
    }
    p.parts.resize(2);
    for (auto& part : p.parts) part.sections = p.sections;
    for (std::size_t i = 0; i < 2; ++i) {
        auto& time = static_cast<TimeSection&>(*p.parts[i].sections.find("time"));
        auto& entries = time.entries;
        if (i == 0) {
            entries.erase(entries.begin() + 5, entries.end());
            time.totals.unknown = 0;
        } else {
            entries.erase(entries.begin(), entries.begin() + 5);
        }
        time.totals.total = time.totals.unknown;
        for (const auto& e : entries) time.totals.total += e.statistics.count;
    }
    std::map<std::string, std::uint64_t> by_process;
    for (const auto& sample : PprofProfile(exported("pprof", p)).samples) {
        if (sample.values[1] == 0) continue;
        by_process[sample.labels.at("process")] += sample.values[1];
        CHECK(sample.labels.contains("pid") == (sample.labels.at("process") == "app"));
    }
    CHECK(by_process == std::map<std::string, std::uint64_t>{{"app", 7700}, {"tool", 1300}});
}

TEST_CASE("there is something to export where there are looks") {
    auto p = looked_at();
    p.remove<MethodSection>();
    p.coverage.weighted_instructions.reset();
    for (const auto* format : {"collapsed", "speedscope", "pprof", "callgrind"}) {
        CAPTURE(format);
        CHECK(!exported(format, p).empty());
        CHECK(contains(why_not(format, p, Weight::instructions), "nothing to export"));
    }
    // It slept all the time.
    p.add<TimeSection>();
    p.find<TimeSection>()->waiting = everything(1000);
    p.find<TimeSection>()->waiting.unknown = 1000;
    for (const auto* format : {"collapsed", "speedscope", "pprof", "callgrind"})
        CHECK(contains(why_not(format, p), "no look of the clock met the program on a processor"));
}

TEST_CASE("the flame graph of time is all the time, and comes first") {
    const auto p = looked_at();
    const auto tree = flame_of_time(p);
    CHECK(tree.total == 9000);
    std::map<std::string, std::uint64_t> roots;
    for (const auto& node : tree.nodes)
        if (node.depth == 0) roots[tree.frames[node.frame].function] += node.weight;
    CHECK(roots == std::map<std::string, std::uint64_t>{
                       {"main", 7700}, {"start_thread", 1000}, {"leaf", 200}, {"[unknown]", 100}});

    const auto sample = sample_profile();
    const auto first_flame = [&](std::optional<Weight> weight) {
        PageLimits limits;
        limits.weight = weight;
        const auto data = nlohmann::ordered_json::parse(page_data(sample, {}, limits));
        CHECK(data["flames"].size() == 3);
        CHECK(data["flames"]["time"]["total"] == 100);
        CHECK(data["time"]["looks"] == 2);
        return std::pair(data["weight"].get<std::string>(), data["flames"].begin().key());
    };
    CHECK(first_flame({}) == std::pair<std::string, std::string>("time", "time"));
    CHECK(first_flame(Weight::instructions) ==
          std::pair<std::string, std::string>("instructions", "contexts"));
}

TEST_CASE("the report begins with time, unless instructions are asked for") {
    const auto comes_first = [](const std::string& text, const char* one, const char* other) {
        REQUIRE(contains(text, one));
        REQUIRE(contains(text, other));
        return text.find(one) < text.find(other);
    };
    const auto p = sample_profile();
    CHECK(comes_first(all_text(p), "Where time goes", "Hot functions"));
    TextOptions options;
    options.weight = Weight::instructions;
    CHECK(comes_first(all_text(p, options), "Hot functions", "Where time goes"));
}

TEST_CASE("trace: in instructions there is no timeline") {
    auto p = sample_profile();
    auto& timeline = p.add<profile::TimelineSection>();
    timeline.column_width = 100;
    timeline.totals = everything(1000);
    timeline.totals.unknown = 1000;
    CHECK(contains(why_not("trace", p, Weight::instructions), "--keep-samples"));
}

}  // namespace shadowprof::report
