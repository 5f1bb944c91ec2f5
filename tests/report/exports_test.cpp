#include "report/exports/exports.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/exports/branches.h"
#include "report/exports/gzip.h"
#include "report/exports/protobuf.h"
#include "report/exports/weighted_stacks.h"
#include "sample_profile.h"
#include "temporary_directory.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

// In instructions; weights_test.cpp has the rest.
std::string exported(const std::string& format, const Profile& p, const std::string& module = "") {
    ExportOptions options;
    options.module = module;
    options.weight = Weight::instructions;
    for (const auto& e : exporters())
        if (e.name == format) return e.run(p, options).text;
    FAIL("no such format");
    return {};
}

std::string why_not(const std::string& format, const Profile& p, const std::string& module = "") {
    try {
        exported(format, p, module);
    } catch (const UserError& e) {
        return e.what();
    }
    return "";
}

Statistics times(std::uint64_t n) {
    Statistics s;
    s.add_sample(n, 1000);
    return s;
}

// One function of one binary, entered from a library:
//
//     100: …          200 times from elsewhere
//     10a: jne 100    1000 times taken, 200 times not
//     10c: …          also 50 times from 120
//     110: ret
Profile loop() {
    Profile p;
    p.targets = {{{"/bin/app"}, 1, 0, false}};
    p.modules = {{"/bin/app", "aa"}, {"/lib/libx.so", "bb"}};
    for (const std::uint64_t offset : {0x100, 0x10a, 0x10c, 0x110, 0x120, 0x130}) {
        Location l;
        l.offset = offset;
        p.locations.push_back(l);
    }
    Location outside;
    outside.module = 1;
    outside.offset = 0x100;
    p.locations.push_back(outside);
    auto& edges = p.add<EdgeSection>();
    edges.entries = {{1, 0, EdgeKind::taken, times(1000)},
                     {6, 0, EdgeKind::call, times(200)},
                     {1, 2, EdgeKind::fallthrough, times(200)},
                     {4, 2, EdgeKind::taken, times(50)},
                     {3, 6, EdgeKind::return_, times(250)}};
    edges.totals.add_sample(1700);
    REQUIRE(!defect_of(p));
    return p;
}

}  // namespace

TEST_CASE("stacks are told outermost first, with functions that were expanded in place") {
    const auto frames = frames_of(sample_profile(), 5);
    REQUIRE(frames.size() == 3);
    // inner() was called on line 7 of inner.h, in outer(), which was called on line 9 of outer.h.
    CHECK(frames[0].function == "ns::parse<int>(std::string const&)");
    CHECK(frames[0].line == 9);
    CHECK(frames[1].function == "outer()");
    CHECK(frames[1].line == 7);
    CHECK(frames[2].function == "inner()");
    CHECK(frames[2].line == 30);
}

TEST_CASE("collapsed: a stack a line") {
    CHECK(exported("collapsed", sample_profile()) ==
          "[other contexts] 5\n"
          "main 15\n"
          "main;ns::parse<int>(std::string const&);outer();inner() 80\n");
    auto p = sample_profile();
    p.remove<ContextSection>();
    const auto lines = exported("collapsed", p);
    CHECK(contains(lines, "main 210\n"));  // 70 times three instructions
    CHECK(contains(lines, "[runtime code]+0x7f0000001000 30\n"));
    p.remove<PathSection>();
    CHECK(contains(exported("collapsed", p), "main 50\n"));
    p.remove<MethodSection>();
    CHECK(contains(why_not("collapsed", p), "-p context, path or method"));
}

TEST_CASE("speedscope: frames are told once") {
    const auto json = nlohmann::json::parse(exported("speedscope", sample_profile()));
    // main is on line 10 as a caller, and on 12 itself.
    const auto frames = json["shared"]["frames"].size();
    CHECK(frames == 6);
    const auto& profile = json["profiles"][0];
    CHECK(profile["type"] == "sampled");
    CHECK(profile["samples"].size() == profile["weights"].size());
    std::uint64_t sum = 0;
    for (const auto& weight : profile["weights"]) sum += weight.get<std::uint64_t>();
    CHECK(sum == 100);
    CHECK(profile["endValue"] == 100);
    for (const auto& sample : profile["samples"])
        for (const auto& frame : sample) CHECK(frame < frames);
}

TEST_CASE("protocol buffers: varints, lengths, packed numbers") {
    ProtobufMessage inner, m;
    inner.number(1, 300);
    m.number(2, 0);  // the default is left out
    m.text(3, "ab");
    m.message(4, inner);
    m.numbers(5, {1, 128});
    using namespace std::string_literals;
    CHECK(m.bytes() == "\x1a\x02"s + "ab" + "\x22\x03\x08\xac\x02\x2a\x03\x01\x80\x01"s);
}

TEST_CASE("gzip: other programs unpack it") {
    for (const std::size_t size : {0, 5, 70000, 200000}) {
        std::string text;
        while (text.size() < size) text += "line " + std::to_string(text.size()) + "\n";
        char path[] = "/tmp/shadowprof-gzip-XXXXXX";
        const int fd = ::mkstemp(path);
        REQUIRE(fd >= 0);
        ::close(fd);
        std::ofstream(path, std::ios::binary) << gzip(text);
        auto* unpacked = ::popen((std::string("gzip -dc <") + path).c_str(), "r");
        REQUIRE(unpacked);
        std::string seen;
        for (int c; (c = std::fgetc(unpacked)) != EOF;) seen += static_cast<char>(c);
        CHECK(::pclose(unpacked) == 0);
        CHECK(seen == text);
        if (size > 1000) CHECK(gzip(text).size() < text.size() / 3);
        ::unlink(path);
    }
}

TEST_CASE("callgrind: costs by line, calls with what they cost") {
    const auto text = exported("callgrind", sample_profile());
    CHECK(contains(text, "events: Ir\nsummary: 380\n"));
    CHECK(contains(text, "fn=main\n12 210\n"));
    // 12 is the line of the call.
    CHECK(contains(text, "cfn=ns::parse<int>(std::string const&)\ncalls=90 0\n12 80\n"));
    CHECK(contains(text, "\ntotals: 380\n"));
}

TEST_CASE("callgrind: calls of a stub are on the lines where they are made") {
    auto p = sample_profile();
    auto stub = p.at(8);
    stub.function = "ns::parse<int>(std::string const&)@plt";
    p.locations.push_back(stub);
    const auto at = static_cast<LocationIndex>(p.locations.size() - 1);
    // 1 calls it 60 times, 3 (line 20) 30 times.
    p.locations[3].line = 20;
    p.find<CallSection>()->entries = {{1, at, times(60)}, {3, at, times(30)}};
    p.find<CallSection>()->totals = {};
    const auto text = exported("callgrind", p);
    CHECK(contains(text, "calls=60 0\n12 53\n"));
    CHECK(contains(text, "calls=30 0\n20 27\n"));  // of 80
    p.remove<CallerSection>();
    CHECK(!contains(exported("callgrind", p), "calls="));
}

TEST_CASE("callgrind: no call is told of as none") {
    auto p = sample_profile();
    for (auto& e : p.find<CallerSection>()->entries) e.calls = 0;
    const auto text = exported("callgrind", p);
    CHECK(!contains(text, "calls=0"));
    CHECK(contains(text, "calls=1 0\n12 80\n"));
}

TEST_CASE("callgrind: of a function that others call as well, unknown callers are told") {
    auto p = sample_profile();
    p.find<CallerSection>()->entries[2].inclusive = times(60);
    CHECK(contains(exported("callgrind", p),
                   "fn=[unknown callers]\ncob=/usr/bin/app\ncfi=/no/such/place/outer.h\n"
                   "cfn=ns::parse<int>(std::string const&)\ncalls=1 0\n0 20\n"));
}

TEST_CASE("callgrind: what recursion costs is in the calls from outside") {
    auto p = sample_profile();
    p.find<CallerSection>()->entries.push_back({5, 5, 7, times(20)});
    const auto text = exported("callgrind", p);
    CHECK(contains(text, "calls=7 0\n9 0\n"));
    CHECK(contains(text, "calls=90 0\n12 80\n"));
}

TEST_CASE("ranges run from where edges lead to where the next one leaves") {
    const ModuleBranches branches(loop(), "");
    const auto ranges = branches.ranges();
    REQUIRE(ranges.size() == 2);
    CHECK(ranges[0].begin == 0x100);
    CHECK(ranges[0].last == 0x10a);
    CHECK(ranges[0].count == 1200);
    CHECK(ranges[1].begin == 0x10c);
    CHECK(ranges[1].last == 0x110);
    CHECK(ranges[1].count == 250);
}

TEST_CASE("ranges that overlap are added up") {
    const auto pieces = disjoint({{10, 20, 5}, {15, 20, 7}, {40, 40, 1}});
    REQUIRE(pieces.size() == 3);
    CHECK(pieces[0].begin == 10);
    CHECK(pieces[0].last == 14);
    CHECK(pieces[0].count == 5);
    CHECK(pieces[1].last == 20);
    CHECK(pieces[1].count == 12);
    CHECK(pieces[2].begin == 40);
    CHECK(pieces[2].last == 40);
}

TEST_CASE("autofdo, llvm-profgen and BOLT: branches by address") {
    CHECK(exported("llvm-profgen", loop()) ==
          "2\n100-10a:1200\n10c-110:250\n"
          "2\n10a->100:1000\n120->10c:50\n");
    CHECK(exported("autofdo", loop()) ==
          "2\n100-10a:1200\n10c-110:250\n"
          "0\n"
          "2\n10a->100:1000\n120->10c:50\n");
    CHECK(exported("bolt-preaggregated", loop()) ==
          "B 10a 100 1000 0\nF 10a 10c 200\nB 110 0 250 0\nB 120 10c 50 0\nB 0 100 200 0\n"
          "F 100 10a 1200\nF 10c 110 250\n");
}

// Such a block begins behind an instruction that is no branch, or behind a call.
TEST_CASE("bolt: code that runs on into a block to which something else jumps") {
    const TemporaryDirectory directory;
    const auto source = directory.file("loops.s"), program = directory.file("loops");
    std::ofstream(source) << R"(
        .globl _start
        .type _start, @function
_start: mov $10, %eax           # 1000, 3 times
again:  dec %eax                # 1005
        jnz again               # 1007, taken 27 times
        call callee             # 1009
more:   dec %edx                # 100e
        jnz more                # 1010, taken 6 times
        ret                     # 1012
        .size _start, . - _start
        .type callee, @function
callee: ret                     # 1013
        .size callee, . - callee
)";
    const auto command = std::string(C_COMPILER) +
                         " -nostdlib -static -Wl,-Ttext=0x1000,--build-id=none -o " + program +
                         " " + source;
    REQUIRE(std::system(command.c_str()) == 0);
    Profile p;
    p.targets = {{{program}, 1, 0, false}};
    p.modules = {{program, ""}, {"/lib/libx.so", "bb"}};
    const auto at = [&](std::uint64_t offset, std::uint32_t module = 0) {
        Location l;
        l.module = module;
        l.offset = offset;
        p.locations.push_back(l);
        return static_cast<LocationIndex>(p.locations.size() - 1);
    };
    p.add<EdgeSection>().entries = {{at(0x50, 1), at(0x1000), EdgeKind::call, times(3)},
                                    {at(0x1007), at(0x1005), EdgeKind::taken, times(27)},
                                    {at(0x1007), at(0x1009), EdgeKind::fallthrough, times(3)},
                                    {at(0x1009), at(0x1013), EdgeKind::call, times(3)},
                                    {at(0x1013), at(0x100e), EdgeKind::return_, times(3)},
                                    {at(0x1010), at(0x100e), EdgeKind::taken, times(6)},
                                    {at(0x1010), at(0x1012), EdgeKind::fallthrough, times(3)},
                                    {at(0x1012), at(0x50, 1), EdgeKind::return_, times(3)}};
    p.find<EdgeSection>()->totals.add_sample(51);
    REQUIRE(!defect_of(p));
    const auto lines = exported("bolt", p);
    CHECK(contains(lines, "1 _start 0 1 _start 5 0 3\n"));
    CHECK(contains(lines, "1 _start 9 1 _start e 0 3\n"));
    CHECK(std::count(lines.begin(), lines.end(), '\n') == 8);
}

TEST_CASE("what cannot be exported is said in a line") {
    CHECK(contains(why_not("bolt", loop()), "/bin/app is not there"));
    CHECK(contains(why_not("llvm", loop()), "/bin/app is not there"));
    CHECK(contains(why_not("autofdo", loop(), "libc.so"),
                   "no module libc.so in the profile; there are: /bin/app, /lib/libx.so"));
    CHECK(!exported("autofdo", loop(), "libx.so").empty());
    auto p = loop();
    p.remove<EdgeSection>();
    CHECK(contains(why_not("autofdo", p), "-p edge"));
    for (const auto& e : exporters()) CHECK(!why_not(std::string(e.name), Profile()).empty());
}

}  // namespace shadowprof::report
