// Golden files show whole reports. Where the wording changes on purpose:
// SHADOWPROF_UPDATE_GOLDEN=1 rewrites them, and their diff is what to review.
#include "report/text/text_report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "base/error.h"
#include "model/utf8.h"
#include "report/text/text_table.h"
#include "sample_profile.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

std::string without_colors(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '\x1b')
            i = text.find('m', i);
        else
            out += text[i];
    return out;
}

void check_width(const std::string& text, std::size_t width) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        CAPTURE(line);
        CHECK(columns_of(line) <= width);
        CHECK(is_utf8(line));
        CHECK((line.empty() || line.back() != ' '));
    }
}

// Names longer than any terminal, in several scripts, and words without a break.
Profile wide_profile() {
    auto p = sample_profile();
    for (auto& l : p.locations) {
        l.function = "中文::" + std::string(200, 'x') + "<größe>::" + l.function;
        l.file = "/src/" + std::string(150, 'y') + "ß.cpp";
        l.text = "vfmadd231pd zmm31{k7}{z}, zmm30, qword ptr [r15+r14*8+0x7fffffff]{1to8}";
    }
    p.targets[0].command = {std::string(500, 'z')};
    p.run.warnings = {std::string(300, 'w')};
    return p;
}

}  // namespace

TEST_CASE("the whole report") {
    check_golden("report.txt", all_text(sample_profile()));
}

TEST_CASE("one function line by line") {
    TextOptions options;
    options.function = "main";
    check_golden("listing.txt", all_text(sample_profile(), options));
    options.function = "ns::parse";
    options.width = 70;
    check_golden("listing_narrow.txt", all_text(sample_profile(), options));
}

TEST_CASE("callers of which no calls were seen have no number of calls") {
    auto p = sample_profile();
    for (auto& e : p.find<profile::CallerSection>()->entries) e.calls = 0;
    for (auto& e : p.find<MethodSection>()->entries) {
        e.back_edges += e.calls;
        e.calls = 0;
    }
    TextOptions options;
    options.function = "ns::parse";
    const auto text = all_text(p, options);
    CHECK(contains(text, "callers  main 80.0 %"));
    CHECK(!contains(text, "0 calls"));
}

TEST_CASE("what following a whole program costs is not known, and not nothing") {
    auto p = sample_profile();
    p.run.mode = "full";
    p.run.is_whole = true;
    p.cost = {};
    p.cost.stop_time = 2.02;
    for (const auto slowdown : {std::optional<double>{}, std::optional{0.0}}) {
        p.cost.slowdown = slowdown;
        const auto text = all_text(p);
        CHECK(contains(text,
                       "Cost       not known: mode full makes a program several times as slow"));
        CHECK(contains(text, "Cost       followed for 2.02 s"));
        CHECK(!contains(text, "stopped"));
    }
}

TEST_CASE("a report is as wide as it may be, and no wider") {
    for (const auto& p : {sample_profile(), wide_profile()})
        for (std::size_t width = 40; width <= 200; width += 7) {
            CAPTURE(width);
            TextOptions options;
            options.width = width;
            check_width(all_text(p, options), width);
            options.function = "main";
            check_width(all_text(p, options), width);
            options.color = true;
            check_width(without_colors(all_text(p, options)), width);
        }
}

TEST_CASE("a command of many arguments is told in a few lines") {
    auto p = sample_profile();
    const auto lines_of = [](const std::string& text) { return std::ranges::count(text, '\n'); };
    const auto before = lines_of(all_text(p));
    for (int n = 0; n < 100'000; ++n) p.targets[0].command.push_back(std::to_string(n));
    const auto text = all_text(p);
    CHECK(lines_of(text) <= before + 6);
    CHECK(text.find(" 0 1 2 3 ") != std::string::npos);
    CHECK(text.find("…") != std::string::npos);
}

TEST_CASE("color changes nothing but color") {
    TextOptions colored, plain;
    colored.color = true;
    CHECK(without_colors(all_text(sample_profile(), colored)) == all_text(sample_profile(), plain));
    CHECK(all_text(sample_profile(), plain).find('\x1b') == std::string::npos);
    colored.function = plain.function = "main";
    CHECK(without_colors(all_text(sample_profile(), colored)) == all_text(sample_profile(), plain));
}

TEST_CASE("what a profile says cannot drive the terminal") {
    auto p = sample_profile();
    const std::string evil = "\x1b]0;owned\x07\x1b[2J\n\r";
    p.tool = p.host.cpu = p.run.mode = p.run.started = evil;
    p.targets[0].command = {evil};
    p.run.warnings = {evil};
    p.coverage.ended = {{evil, 1}};
    p.modules[0].path = p.modules[1].path = "/" + evil;
    for (auto& l : p.locations) {
        l.function = l.function.empty() ? "" : evil + l.function;
        l.text = l.file = evil;
        for (auto& f : l.inlined) f.function = f.file = evil;
    }
    for (auto& e : p.find<ValueSection>()->entries) e.operand = evil;
    TextOptions options;
    for (const auto& text : {all_text(p), [&] {
                                 options.function = "*";
                                 return all_text(p, options);
                             }()})
        for (const char c : text) CHECK((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
}

TEST_CASE("--top limits every table") {
    TextOptions options;
    options.top = 1;
    const auto text = all_text(sample_profile(), options);
    CHECK(text.find("fallthrough") == text.npos);
    CHECK(text.find("indirect") == text.npos);
    CHECK(text.size() < all_text(sample_profile()).size());
}

TEST_CASE("functions are found by name, part of a name, and pattern") {
    const auto listing = [](const std::string& name) {
        TextOptions options;
        options.function = name;
        return all_text(sample_profile(), options);
    };
    const std::string parse = "ns::parse<int>(std::string const&)\n";
    for (const auto* name :
         {"ns::parse<int>(std::string const&)", "ns::parse", "parse", "*parse*", "ns::p?rse"}) {
        CAPTURE(name);
        CHECK(listing(name).starts_with(parse));
    }
    // Both match; the hotter one is shown, the other named.
    const auto both = listing("a");
    CHECK(both.starts_with("main\n"));
    CHECK(both.find("'a' also matches: ns::parse<int>(std::string const&)") != both.npos);
    CHECK_THROWS_WITH_AS(
        listing("mian"),
        "no function in the profile is called 'mian'; near are: main, ns::parse, app+0x2000",
        UserError);
}

TEST_CASE("profiles with nothing in them") {
    Profile p;
    CHECK(all_text(p).find("0 instructions in 0 blocks, 0 samples") != std::string::npos);
    p.add<PathSection>();
    p.add<EdgeSection>();
    p.add<CallSection>();
    p.add<MethodSection>();
    p.add<ValueSection>();
    p.add<ContextSection>();
    p.add<CallerSection>();
    CHECK(all_text(p).find("none seen") != std::string::npos);
    TextOptions options;
    options.function = "f";
    CHECK_THROWS_WITH_AS(all_text(p, options), "the profile names no functions", UserError);
}

TEST_CASE("steps make way in the middle") {
    std::vector<std::string> steps;
    for (int i = 0; i < 100; ++i) steps.push_back("step" + std::to_string(i));
    const auto text = wrap_steps(steps, 4, 60, 3);
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
    CHECK(text.starts_with("    step0 → step1"));
    CHECK(text.ends_with("→ step99\n"));
    CHECK(text.find("more …") != text.npos);
    check_width(text, 60);
}

}  // namespace shadowprof::report
