#include "report/diff/align.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "sample_profile.h"

namespace shadowprof::report {

namespace {

Location at(ModuleIndex module, std::uint64_t offset, std::string function = {}) {
    Location l;
    l.module = module;
    l.offset = offset;
    l.function = std::move(function);
    return l;
}

// A profile with one call from each location to the next.
NamedProfile named(std::string name, std::vector<Module> modules, std::vector<Location> locations) {
    NamedProfile made{std::move(name), {}};
    auto& p = made.profile;
    p.targets.push_back({{"./app"}, 1, 0, false});
    p.modules = std::move(modules);
    p.locations = std::move(locations);
    auto& calls = p.add<CallSection>();
    for (LocationIndex i = 0; i + 1 < p.locations.size(); ++i) {
        calls.entries.push_back({i, i + 1, {}});
        calls.entries.back().statistics.count = 1;
    }
    calls.totals.total = calls.entries.size();
    calls.totals.total_squares = calls.totals.total * calls.totals.total;
    calls.totals.samples = 1;
    return made;
}

std::string why_not(NamedProfile a, NamedProfile b) {
    try {
        align(a, b);
        return "they were aligned";
    } catch (const UserError& e) {
        CHECK(e.status() == ExitStatus::incomparable);
        const std::string line = e.what();
        CHECK(line.find('\n') == line.npos);
        const std::string begin = "cannot compare a with b: ";
        CHECK(line.starts_with(begin));
        return line.substr(begin.size());
    }
}

}  // namespace

TEST_CASE("the same place has the same index, wherever its module lies and whatever the order") {
    auto a = named("a", {{"/old/lib.so", "22"}, {"/bin/app", "11"}},
                   {at(1, 0x30), at(0, 0x10), at(1, 0x20, "of a")});
    auto b = named("b", {{"/bin/app", "11"}, {"/new/lib.so", "22"}, {"/seldom.so", "33"}},
                   {at(0, 0x20, "of b"), at(2, 0x99), at(1, 0x10)});
    CHECK(align(a, b).empty());
    CHECK(defect_of(a.profile) == std::nullopt);
    CHECK(defect_of(b.profile) == std::nullopt);
    CHECK(a.profile.modules ==
          std::vector<Module>{{"/bin/app", "11"}, {"/new/lib.so", "22"}, {"/seldom.so", "33"}});
    CHECK(a.profile.modules == b.profile.modules);
    // By module and offset; what both describe is called as in b.
    CHECK(a.profile.locations ==
          std::vector<Location>{at(0, 0x20, "of b"), at(0, 0x30), at(1, 0x10), at(2, 0x99)});
    CHECK(a.profile.locations == b.profile.locations);

    const auto& in_a = a.profile.find<CallSection>()->entries;
    CHECK(in_a[0].from == 1);
    CHECK(in_a[0].to == 2);
    CHECK(in_a[1].from == 2);
    CHECK(in_a[1].to == 0);
    const auto& in_b = b.profile.find<CallSection>()->entries;
    CHECK(in_b[0].from == 0);
    CHECK(in_b[0].to == 3);
    CHECK(in_b[1].to == 2);
}

TEST_CASE("places differ by content and by what they stand for, too") {
    auto content = at(0, 0x10);
    content.content = 7;
    auto after_call = at(0, 0x10);
    after_call.return_address = true;
    auto a = named("a", {{"/bin/app", "11"}}, {at(0, 0x10), content});
    auto b = named("b", {{"/bin/app", "11"}}, {after_call, at(0, 0x10)});
    align(a, b);
    CHECK(a.profile.locations.size() == 3);
}

TEST_CASE("a profile aligned with itself only changes its order") {
    NamedProfile a{"a", sample_profile()}, b{"b", sample_profile()};
    align(a, b);
    CHECK(a.profile == b.profile);
    CHECK(defect_of(a.profile) == std::nullopt);
    const auto original = sample_profile();
    CHECK(a.profile.locations.size() == original.locations.size());
    std::vector<Location> before, after;
    auto copy = original;
    copy.each_location([&](LocationIndex i) { before.push_back(original.at(i)); });
    a.profile.each_location([&](LocationIndex i) { after.push_back(a.profile.at(i)); });
    REQUIRE(before.size() == after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
        CHECK(before[i].offset == after[i].offset);
        CHECK(before[i].text == after[i].text);
        CHECK(original.modules[before[i].module] == a.profile.modules[after[i].module]);
    }
}

TEST_CASE("other builds cannot be compared") {
    const auto app = named("a", {{"/bin/app", "1111"}}, {at(0, 1), at(0, 2)});
    const auto rebuilt = named("b", {{"/bin/app", "2222"}}, {at(0, 1)});
    CHECK(why_not(app, rebuilt) ==
          "different builds of app: /bin/app (build 1111) and /bin/app (build 2222)");

    // A library will do.
    const auto with_library = [](const char* name, const char* build) {
        return named(name, {{"/bin/app", "11"}, {"/lib.so", build}}, {at(0, 1), at(1, 2)});
    };
    CHECK(why_not(with_library("a", "22"), with_library("b", "33")) ==
          "different builds of lib.so: /lib.so (build 22) and /lib.so (build 33)");

    // So will the program in another folder, though they have a library in common.
    const auto in_folder = [](const char* name, const char* path, const char* build) {
        return named(name, {{path, build}, {"/lib.so", "22"}}, {at(0, 1), at(1, 2)});
    };
    CHECK(why_not(in_folder("a", "/old/app", "11"), in_folder("b", "/new/app", "12")) ==
          "different builds of app: /old/app (build 11) and /new/app (build 12)");
}

TEST_CASE("other programs cannot be compared") {
    const auto a = named("a", {{"/bin/app", "11"}, {"/lib.so", "22"}}, {at(0, 1), at(1, 2)});
    auto b = named("b", {{"/bin/other", "33"}, {"/lib.so", "22"}}, {at(0, 1), at(1, 2)});
    b.profile.targets[0].command = {"other", "-x"};
    CHECK(why_not(a, b) == "/bin/app and /bin/other are different programs");
    CHECK(why_not(a, named("b", {{"/x", "44"}}, {at(0, 1)})) == "they have no code in common");
    CHECK(why_not(a, named("b", {}, {})) == "they have no code in common");
    // A profile may have seen nothing of the program's own code.
    auto less = named("b", {{"/lib.so", "22"}}, {at(0, 2)});
    auto whole = a;
    CHECK(align(whole, less).empty());
}

TEST_CASE("what may be the same, or differs and does not matter, is told") {
    const auto notes_of = [](Module in_a, Module in_b) {
        auto a = named("a", {{"/bin/app", "11"}, std::move(in_a)}, {at(0, 1), at(1, 2)});
        auto b = named("b", {{"/bin/app", "11"}, std::move(in_b)}, {at(0, 1), at(1, 2)});
        const auto notes = align(a, b);
        REQUIRE(notes.size() == 1);
        CHECK(defect_of(a.profile) == std::nullopt);
        return std::pair(notes[0], a.profile.locations.size());
    };
    using Notes = std::pair<std::string, std::size_t>;
    CHECK(notes_of({"/lib.so", ""}, {"/lib.so", ""}) ==
          Notes{"/lib.so has no build id: nobody can tell whether it is the same file in both "
                "profiles",
                2});
    CHECK(notes_of({"/lib.so", ""}, {"/lib.so", "22"}) ==
          Notes{"/lib.so has no build id in a: nobody can tell whether it is the same file in both "
                "profiles",
                2});
    CHECK(notes_of({"[vdso]", "22"}, {"[vdso]", "33"}) ==
          Notes{"[vdso] in a (build 22) and [vdso] in b (build 33) are different files: their code "
                "is not compared",
                3});
    CHECK(notes_of({"/x/lib.so", "22"}, {"/y/lib.so", "33"}) ==
          Notes{"/x/lib.so in a (build 22) and /y/lib.so in b (build 33) are different files: "
                "their code is not compared",
                3});
    CHECK(notes_of({"[runtime code]", ""}, {"[runtime code]", ""}) ==
          Notes{"[runtime code] is compared by address and content: where a run put it elsewhere, "
                "it is missed",
                2});
}

}  // namespace shadowprof::report
