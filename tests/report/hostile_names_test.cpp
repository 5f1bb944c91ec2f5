// Names come from programs and files that nobody vouches for. Whatever is in them, they add no line
// to anything we print, drive no terminal and end no script.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/error.h"
#include "model/profile_file.h"
#include "model/utf8.h"
#include "profile/registry.h"
#include "report/compare/compare_json.h"
#include "report/compare/compare_text.h"
#include "report/diff/diff_json.h"
#include "report/diff/diff_text.h"
#include "report/diff/gate.h"
#include "report/exports/exports.h"
#include "report/page/page.h"
#include "report/text/text_report.h"
#include "sample_profile.h"
#include "temporary_directory.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

// Line ends of all kinds, escape sequences, C1 controls, marks of direction, and what has a meaning
// in HTML, Markdown and the formats of lines.
constexpr std::string_view hostile_pieces[]{"\n",
                                            "\r\n",
                                            "\t",
                                            "\x1b[31m",
                                            "\x1b]0;title\x07",
                                            "\x7f",
                                            "\x08",
                                            "\u009b1m",
                                            "\u0085",
                                            "\u2028",
                                            "\u202e",
                                            "\u2066",
                                            "\ufeff",
                                            "</script>",
                                            "<script>",
                                            "<!--",
                                            "&amp;",
                                            ";",
                                            "|",
                                            "`",
                                            "\\",
                                            "\"",
                                            "'",
                                            ": 1 2",
                                            "\n9 9\n",
                                            "\nfn=x\n",
                                            "\n1 f 0 1 g 0 0 7\n",
                                            "(1)",
                                            "#",
                                            "!",
                                            "%s{}",
                                            "=",
                                            "\n\n"};

std::string hostile(std::mt19937& random) {
    std::string text;
    for (int i = 0; i < 4; ++i) text += hostile_pieces[random() % std::size(hostile_pieces)];
    return text;
}

// Every name and text of the profile, changed.
Profile changed(const Profile& profile,
                const std::function<std::string(const std::string&)>& change) {
    auto json = nlohmann::json::parse(to_json(profile));
    const std::set<std::string> words{"schema",   "kind", "root",   "state",
                                      "profiles", "seed", "started"};
    const std::function<void(nlohmann::json&)> visit = [&](nlohmann::json& node) {
        if (node.is_string()) {
            const auto text = node.get<std::string>();
            if (!text.starts_with("0x")) node = change(text);
        }
        if (node.is_array())
            for (auto& item : node) visit(item);
        if (node.is_object())
            for (auto& [key, value] : node.items())
                if (!words.contains(key)) visit(value);
    };
    visit(json);
    return profile::from_json(json.dump());
}

void check_lines(const std::string& text) {
    CHECK(model::is_utf8(text));
    for (std::string_view rest = text; !rest.empty();) {
        const auto next = model::next_code_point(rest);
        if (next.code_point != '\n' && model::is_unprintable(next.code_point))
            FAIL_CHECK("unprintable ", static_cast<unsigned>(next.code_point),
                       " before: ", std::string(rest.substr(next.bytes, 40)));
        rest.remove_prefix(next.bytes);
    }
}

SymbolOptions no_files() {
    SymbolOptions options;
    options.root = "/no/such/root";
    options.debug_directories.clear();
    return options;
}

using Renderer = std::function<std::string(const Profile&)>;

std::string exported(const Exporter& exporter, const Profile& p,
                     std::optional<Weight> weight = {}) {
    ExportOptions options;
    options.weight = weight;
    options.symbols = no_files();
    try {
        auto out = exporter.run(p, options);
        for (const auto& note : out.notes) out.text += note + "\n";
        return out.text;
    } catch (const UserError& error) {
        return model::printable(error.what());  // as it is printed
    }
}

}  // namespace

TEST_CASE("hostile names: text is what it is with printable names") {
    std::vector<std::pair<std::string, Renderer>> renderers;
    for (const std::size_t width : {60, 200})
        for (const bool lists : {false, true})
            renderers.emplace_back("report", [=](const Profile& p) {
                TextOptions options;
                options.width = width;
                options.symbols = no_files();
                if (lists) options.function = "*";
                return all_text(p, options);
            });
    renderers.emplace_back("compare", [](const Profile& p) {
        CompareTextOptions options;
        options.functions = true;
        return render_comparison(compare({"a", p}, {"b", p}), options);
    });
    const auto diffed = [](const Profile& p) {
        auto now = p;
        for (auto& e : now.find<EdgeSection>()->entries) e.statistics.count += 1000;
        now.find<EdgeSection>()->totals.total += 1000 * now.find<EdgeSection>()->entries.size();
        return diff({{p.tool, p}}, {p.host.kernel, now});
    };
    renderers.emplace_back("diff",
                           [&](const Profile& p) { return render_diff(diffed(p), nullptr); });
    renderers.emplace_back(
        "markdown", [&](const Profile& p) { return render_diff_markdown(diffed(p), nullptr); });
    for (const auto& e : exporters())
        if (e.name != "speedscope" && e.name != "pprof")
            for (const auto weight : {Weight::time, Weight::instructions})
                renderers.emplace_back(
                    e.name, [&e, weight](const Profile& p) { return exported(e, p, weight); });

    std::mt19937 random(1);
    for (int round = 0; round < 40; ++round) {
        const auto evil = changed(sample_profile(), [&](const std::string& text) {
            return round % 3 == 0 ? hostile(random) : text + hostile(random);
        });
        const auto tame =
            changed(evil, [](const std::string& text) { return model::printable(text); });
        for (const auto& [name, render] : renderers) {
            CAPTURE(name);
            CAPTURE(round);
            const auto text = render(evil);
            check_lines(text);
            CHECK(text == render(tame));
        }
    }
}

TEST_CASE("hostile names: JSON escapes them, and the page has no script but its own") {
    std::mt19937 random(2);
    const auto scripts = [](const std::string& page) {
        std::size_t n = 0;
        for (const auto* tag : {"<script", "</script", "<!--"})
            for (auto at = page.find(tag); at != page.npos; at = page.find(tag, at + 1)) ++n;
        return n;
    };
    const auto own = scripts(render_page(sample_profile(), no_files()));
    for (int round = 0; round < 20; ++round) {
        const auto evil = changed(sample_profile(),
                                  [&](const std::string& text) { return text + hostile(random); });
        const auto d = diff({{hostile(random), evil}}, {hostile(random), evil});
        const auto speedscope = *std::find_if(exporters().begin(), exporters().end(),
                                              [](const auto& e) { return e.name == "speedscope"; });
        for (const auto& json :
             {to_json(evil), to_json(compare({hostile(random), evil}, {"b", evil})),
              to_json(d, nullptr), exported(speedscope, evil), to_github_action_benchmark(d, 0.001),
              to_bencher(d, 0.001)}) {
            check_lines(json);
            CHECK(nlohmann::json::accept(json));
        }
        CHECK(profile::from_json(to_json(evil)) == evil);
        const auto page = render_page(evil, no_files());
        CHECK(scripts(page) == own);
    }
}

TEST_CASE("hostile names of symbols in a binary add no rows") {
    const TemporaryDirectory directory;
    const auto source = directory.file("evil.s"), program = directory.file("evil");
    std::ofstream(source) << R"(
        .globl _start
        .type _start, @function
_start: mov $10, %eax           # 1000
again:  dec %eax                # 1005
        jnz again               # 1007
        call evil               # 1009
        ret
        .size _start, . - _start
        .globl evil
        .type evil, @function
evil:   ret                     # 100f
        .size evil, 1
)";
    const std::string name = "f\n1 forged 0 1 forged 0 0 7\nx\x1b[31m y:9:9\n !z\\";
    const auto command = std::string(C_COMPILER) +
                         " -nostdlib -static -Wl,-Ttext=0x1000,--build-id=none -o " + program +
                         " " + source + " && objcopy --redefine-sym 'evil=" + name + "' " + program;
    REQUIRE(std::system(command.c_str()) == 0);
    Profile p;
    p.targets = {{{program}, 1, 0, false}};
    p.modules = {{program, ""}};
    const auto at = [&](std::uint64_t offset) {
        Location l;
        l.offset = offset;
        p.locations.push_back(l);
        return static_cast<LocationIndex>(p.locations.size() - 1);
    };
    auto& edges = p.add<EdgeSection>();
    edges.entries = {{at(0x1007), at(0x1005), EdgeKind::taken, exactly(27, 33)},
                     {at(0x1009), at(0x100f), EdgeKind::call, exactly(3, 33)},
                     {at(0x1007), at(0x1009), EdgeKind::fallthrough, exactly(3, 33)}};
    edges.totals.add_sample(33);
    REQUIRE(!defect_of(p));
    const auto text = export_bolt(p, {}).text;
    check_lines(text);
    CHECK(contains(
        text,
        "1 _start 9 1 f�1\\ forged\\ 0\\ 1\\ forged\\ 0\\ 0\\ 7�x�[31m\\ y:9:9�\\ !z\\\\ 0 0 3\n"));
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}

}  // namespace shadowprof::report
