// A profile written by hand of a program that divides by an argument:
//
//     main    1000  mov esi, 7           900 times
//             1005  call half            900 times
//             100a  mov esi, ebx         100 times, values all different
//             100c  call half            100 times
//     half    1100  mov ecx, esi         1000 times
//             1102  div ecx              1000 times
//             1104  ret
#include "report/opportunities/opportunities.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "profile/sharing/sharing_section.h"
#include "report/opportunities/last_writers.h"
#include "report/page/page_data.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

enum : LocationIndex { write_7, call_7, write_any, call_any, copy, division, return_ };

Profile dividing_program(std::uint64_t with_7, std::uint64_t others) {
    const auto all = with_7 + others;
    Profile p;
    p.modules = {{"/no/such/program", "00"}};
    p.coverage.instructions = 6 * all;
    const auto at = [&](std::uint64_t offset, std::uint64_t function, const char* name,
                        const char* text) {
        Location l;
        l.offset = offset;
        l.function_offset = function;
        l.function = name;
        l.text = text;
        p.locations.push_back(l);
    };
    at(0x1000, 0x1000, "main", "mov esi, 0x7");
    at(0x1005, 0x1000, "main", "call 0x1100");
    at(0x100a, 0x1000, "main", "mov esi, ebx");
    at(0x100c, 0x1000, "main", "call 0x1100");
    at(0x1100, 0x1100, "half", "mov ecx, esi");
    at(0x1102, 0x1100, "half", "div ecx");
    at(0x1104, 0x1100, "half", "ret");

    auto& edges = p.add<EdgeSection>();
    edges.totals = everything(2 * all);
    edges.entries = {{call_7, copy, EdgeKind::call, exactly(with_7, 2 * all)},
                     {return_, write_any, EdgeKind::return_, exactly(all, 2 * all)}};
    if (others) edges.entries.push_back({call_any, copy, EdgeKind::call, exactly(others, 2 * all)});

    auto& values = p.add<ValueSection>();
    const auto yields = [&](LocationIndex where, const char* operand, std::uint64_t executions,
                            std::uint64_t with_value) {
        ValueEntry v;
        v.location = where;
        v.operand = operand;
        v.bits = 32;
        v.executions = everything(executions);
        v.executions.unknown = executions - with_value;
        v.top = {{7, exactly(with_value, executions)}};
        values.totals.merge(v.executions);
        values.entries.push_back(v);
    };
    yields(write_7, "esi", with_7, with_7);
    if (others) yields(write_any, "esi", others, 0);
    yields(copy, "ecx", all, with_7);
    yields(division, "eax", all, 0);
    values.totals.unknown = 0;
    values.totals.exhaustive = true;
    return p;
}

// What the clock saw of running threads.
void add_looks(Profile& p, LocationIndex where, int looks) {
    auto& time = p.find<TimeSection>() ? *p.find<TimeSection>() : p.add<TimeSection>();
    auto& e = time.entries.emplace_back();
    e.thread = "main";
    e.state = profile::ThreadState::user;
    e.frames = {where};
    for (int n = 0; n < looks; ++n) {
        e.statistics.add_sample(5'000'000, 5'000'000);
        time.totals.add_sample(5'000'000);
    }
}

const Finding* find(const std::vector<Finding>& all, std::string_view kind) {
    for (const auto& f : all)
        if (f.kind->name == kind) return &f;
    return nullptr;
}

}  // namespace

TEST_CASE("what one sample saw is no finding, however many executions it stands for") {
    // The same in samples, of which the first saw so many per cent, and the others the rest.
    const auto sampled = [](int samples, std::uint64_t in_first) {
        auto p = dividing_program(9900, 100);
        const auto spread = [&](std::uint64_t count, auto add) {
            add(count * in_first / 100);
            for (int n = 1; n < samples; ++n)
                add(count * (100 - in_first) / 100 / static_cast<unsigned>(samples - 1));
        };
        auto& edges = *p.find<EdgeSection>();
        edges.totals.exhaustive = false;
        for (auto& e : edges.entries) {
            const auto all = std::exchange(e.statistics, {}).count;
            spread(all, [&](auto part) { e.statistics.add_sample(part, 2 * part); });
        }
        for (auto& e : p.find<ValueSection>()->entries) {
            const auto all = std::exchange(e.executions, {}).total;
            auto& top = e.top.front().statistics;
            const auto with_7 = std::exchange(top, {}).count;
            spread(all, [&](auto part) {
                e.executions.add_sample(part);
                top.add_sample(part * with_7 / all, part);
            });
        }
        return p;
    };
    Symbols symbols;
    const auto finds = [&](const Profile& p) {
        return find(find_opportunities(p, symbols, Code::all), "specialise-argument") != nullptr ||
               find(find_opportunities(p, symbols, Code::all), "constant-divisor") != nullptr;
    };
    CHECK(finds(dividing_program(9900, 100)));
    CHECK(finds(sampled(40, 3)));
    CHECK_FALSE(finds(sampled(1, 100)));
    CHECK_FALSE(finds(sampled(4, 25)));
    CHECK_FALSE(finds(sampled(40, 90)));
}

TEST_CASE("the writers of a register are found in the callers") {
    const auto p = dividing_program(900, 100);
    const Evidence e(p);
    const auto writers = last_writers(e, e.point(copy), RegisterFamily::rsi);
    REQUIRE(writers.found.size() == 2);
    CHECK(writers.found[0].at == e.point(write_7));
    CHECK(writers.found[0].flow == 900);
    CHECK(writers.found[1].at == e.point(write_any));
    CHECK(writers.lost == 0);
    const auto value = dominant_value(e, writers, RegisterFamily::rsi);
    REQUIRE(value);
    CHECK(value->value == 7);
    CHECK(value->ratio.share == doctest::Approx(0.9));
}

TEST_CASE("what is not in the profile is no evidence") {
    auto p = dividing_program(900, 100);
    SUBCASE("a writer was dropped") {
        p.find<ValueSection>()->dropped = 1;  // it may have run as often as the division
        const Evidence e(p);
        const auto writers = last_writers(e, e.point(copy), RegisterFamily::rsi);
        CHECK(writers.lost > 0);
    }
    SUBCASE("a call was dropped") {
        p.find<EdgeSection>()->entries.pop_back();
        const Evidence e(p);
        CHECK(last_writers(e, e.point(copy), RegisterFamily::rsi).lost == 100);
    }
    SUBCASE("too few executions") {
        p = dividing_program(90, 0);
        Symbols symbols;
        CHECK_FALSE(find(find_opportunities(p, symbols), "constant-divisor"));
    }
}

TEST_CASE("a division by what is nearly always the same is found") {
    Symbols symbols;
    const auto p = dividing_program(950, 50);
    const auto found = find_opportunities(p, symbols);
    const auto* f = find(found, "constant-divisor");
    REQUIRE(f);
    CHECK(f->location == division);
    CHECK(f->what == "divides by 0x7 in 95.0 % of 1000 executions");
    CHECK(f->touches == 1);  // 20 instructions' worth in 6: no more than all
    CHECK_FALSE(find(find_opportunities(dividing_program(600, 400), symbols), "constant-divisor"));
}

TEST_CASE("a divisor that is read from memory is found, too") {
    auto p = dividing_program(950, 50);
    p.locations[division].text = "div [r8+r10*8]";
    auto& entries = p.find<ValueSection>()->entries;
    ValueEntry v;
    v.location = division;
    v.operand = "[r8+r10*8]";
    v.kind = ValueKind::loaded;
    v.bits = 64;
    v.executions = everything(1000);
    v.top = {{8, exactly(980, 1000)}};
    v.executions.unknown = 20;
    entries.push_back(v);
    Symbols symbols;
    auto found = find_opportunities(p, symbols);
    const auto* f = find(found, "constant-divisor");
    REQUIRE(f);
    CHECK(f->what == "divides by 0x8 in 98.0 % of 1000 executions");
    entries.back().top = {{8, exactly(500, 1000)}};
    found = find_opportunities(p, symbols);
    CHECK_FALSE(find(found, "constant-divisor"));
    CHECK_FALSE(find(found, "power-of-two-divisor"));
    entries.back().top = {{8, exactly(500, 1000)}, {16, exactly(450, 1000)}};
    entries.back().executions.unknown = 50;
    found = find_opportunities(p, symbols);
    f = find(found, "power-of-two-divisor");
    REQUIRE(f);
    CHECK(f->what == "divides by powers of two in 95.0 % of 1000 executions");
    CHECK(contains(f->evidence.front(), "by 8 in 50.0 %, 16 in 45.0 %"));
    entries.back().top = {{8, exactly(500, 1000)}, {12, exactly(450, 1000)}};
    CHECK_FALSE(find(find_opportunities(p, symbols), "power-of-two-divisor"));
}

TEST_CASE("one false sharing is one finding, whichever accesses show it") {
    auto p = dividing_program(900, 100);
    auto& list = p.add<profile::SharingSection>();
    list.totals = everything(10'000);
    const auto add = [&](LocationIndex at, LocationIndex other, std::uint64_t times,
                         profile::Sharing kind = profile::Sharing::false_) {
        auto& e = list.entries.emplace_back();
        e.kind = kind;
        e.location = at;
        e.other = other;
        e.memory = profile::SharedMemory::other;
        e.statistics = exactly(times, 10'000);
        e.windows = 3;
    };
    add(call_7, division, 1300);
    add(division, write_any, 1200);
    add(write_7, copy, 1100);
    add(copy, call_any, 1000);
    add(copy, division, 500, profile::Sharing::true_);
    Symbols symbols;
    const auto found = find_opportunities(p, symbols);
    CHECK(std::ranges::count(found, std::string_view{"false-sharing"},
                             [](const auto& f) { return f.kind->name; }) == 1);
    const auto* f = find(found, "false-sharing");
    REQUIRE(f);
    CHECK(f->touches == doctest::Approx(0.46));
    CHECK(f->location == call_7);
    CHECK(f->evidence.size() == 4);
}

TEST_CASE("a number of the code is always written, however few values were read") {
    auto p = dividing_program(1000, 0);
    // Only two executions of the writer were read; and nothing was read of the copy.
    auto& values = p.find<ValueSection>()->entries;
    values[0].executions = {};
    values[0].executions.add_sample(2);
    values[0].top = {{7, exactly(2, 2)}};
    values[0].unread = 998;
    std::erase_if(values, [](const ValueEntry& e) { return e.location == copy; });
    const Evidence e(p);
    const auto value = dominant_value(*e.written_at(e.point(write_7), RegisterFamily::rsi));
    REQUIRE(value);
    CHECK(value->value == 7);
    CHECK(value->ratio.low == 1);
}

TEST_CASE("a finding touches no more than its function has") {
    Symbols symbols;
    auto p = dividing_program(950, 50);
    auto& methods = p.add<MethodSection>();
    methods.totals = everything(1000);
    methods.instructions = everything(7'500'000);
    methods.entries = {{copy, exactly(1000, 1000), 1000, 0, 0, exactly(3'000'000, 7'500'000)}};
    p.coverage.instructions = 7'500'000;
    p.coverage.weighted_instructions = 30'000;
    const auto found = find_opportunities(p, symbols);
    const auto* f = find(found, "constant-divisor");
    REQUIRE(f);
    CHECK(f->touches == doctest::Approx(0.4));
    SUBCASE("… of the time") {
        add_looks(p, write_7, 900);
        add_looks(p, copy, 100);
        const auto limited = find_opportunities(p, symbols);
        f = find(limited, "constant-divisor");
        REQUIRE(f);
        CHECK(f->touches == doctest::Approx(0.1));
        CHECK(f->evidence.back().find("by the clock half has 10.0 %") == 0);
        *p.find<TimeSection>() = TimeSection{};
        add_looks(p, write_7, 1000);
        CHECK_FALSE(find(find_opportunities(p, symbols), "constant-divisor"));
    }
    SUBCASE("… unless the clock saw little") {
        add_looks(p, write_7, 99);
        CHECK(find(find_opportunities(p, symbols), "constant-divisor"));
    }
    SUBCASE("what is called belongs to a call that could be inlined") {
        p.find<MethodSection>()->entries.front().instructions = exactly(20'000, 7'500'000);
        add_looks(p, write_7, 1);
        add_looks(p, copy, 999);
        const auto inlined = find_opportunities(p, symbols);
        f = find(inlined, "inline-call");
        REQUIRE(f);
        CHECK(f->touches > 0);
        CHECK(f->evidence.back().find("by the clock") != 0);
    }
}

TEST_CASE("libraries of the system are left out, be their debug symbols installed or not") {
    Symbols symbols;
    auto p = dividing_program(950, 50);
    p.modules[0].path = "/usr/lib/x86_64-linux-gnu/libdiv.so.6";
    CHECK_FALSE(find(find_opportunities(p, symbols), "constant-divisor"));
    CHECK(find(find_opportunities(p, symbols, Code::all), "constant-divisor"));
    const auto on_the_page = [&](bool all_code) {
        return nlohmann::json::parse(page_data(p, {}, {.all_code = all_code}))["findings"].size();
    };
    CHECK(on_the_page(false) == 0);
    CHECK(on_the_page(true) > 0);
    for (auto& l : p.locations) l.file = "/build/libdiv/div.c";
    CHECK_FALSE(find(find_opportunities(p, symbols), "constant-divisor"));
    p.modules[0].path = "/usr/lib/gcc/x86_64-linux-gnu/12/cc1";  // a program
    for (auto& l : p.locations) l.file = "";
    CHECK(find(find_opportunities(p, symbols), "constant-divisor"));
}

TEST_CASE("two samples are no evidence for anything") {
    Symbols symbols;
    auto p = dividing_program(950, 50);
    p.coverage.samples = 2;
    p.run.mode = "shadow";
    auto& edges = p.find<EdgeSection>()->totals;
    edges.exhaustive = false;
    p.find<ValueSection>()->totals.exhaustive = false;
    for (auto& e : p.find<ValueSection>()->entries) e.executions.exhaustive = false;
    CHECK(find_opportunities(p, symbols).empty());
}

TEST_CASE("divisions of one function are one finding") {
    Symbols symbols;
    auto p = dividing_program(950, 50);
    auto again = p.at(division);
    again.offset = 0x1103;
    p.locations.push_back(again);
    const auto second = static_cast<LocationIndex>(p.locations.size() - 1);
    auto yields = p.find<ValueSection>()->entries.back();
    yields.location = second;
    p.find<ValueSection>()->entries.push_back(yields);
    p.coverage.instructions = 600'000;
    const auto found = find_opportunities(p, symbols);
    CHECK(std::count_if(found.begin(), found.end(),
                        [](const Finding& f) { return f.kind->name == "constant-divisor"; }) <= 1);
}

TEST_CASE("loads that wait for what was known, or for a pointer") {
    // A program of 100,000 instructions. Its loads, and what of them was timed: 2,000 of 20,000 by
    // steps, for 50 ns each; 1,000 of 10,000 that follow pointers, for 80 ns.
    Profile p;
    p.modules = {{"/no/such/program", "00"}};
    p.coverage.instructions = 100'000;
    p.coverage.weighted_instructions = 100'000;
    const auto at = [&](std::uint64_t offset, const char* text) {
        Location l;
        l.offset = offset;
        l.function_offset = 0x1000;
        l.function = "walk";
        l.file = "walk.c";
        l.line = static_cast<std::uint32_t>(offset & 0xff);
        l.text = text;
        p.locations.push_back(l);
    };
    at(0x1010, "mov rax, [rdi+rcx*8]");
    at(0x1020, "mov rax, [rax]");
    auto& list = p.add<LatencySection>();
    list.scale.clock_is_usable = true;
    const auto add = [&](LocationIndex where, std::uint64_t ns,
                         std::uint64_t timed) -> LatencyEntry& {
        LatencyEntry e;
        e.location = where;
        e.operand_index = 1;
        e.loads = 10 * timed;
        e.timed = timed;
        e.picoseconds = static_cast<std::int64_t>(timed * ns * 1000);
        e.square_nanoseconds = timed * ns * ns;
        e.histogram[profile::latency_bin(static_cast<double>(ns))] = timed;
        e.by_time[3] = timed;
        e.modelled = 100;
        e.by_model[3] = 100;
        return list.entries.emplace_back(e);
    };
    auto& stepping = add(0, 50, 2000);
    stepping.pattern = AddressPattern::stride;
    stepping.step = 4160;
    auto& chasing = add(1, 80, 1000);
    chasing.pattern = AddressPattern::chase;
    chasing.origin = 1;
    const auto settle = [&] {
        list.totals = {};
        std::uint64_t total = 0;
        for (const auto& e : list.entries)
            total += static_cast<std::uint64_t>(e.picoseconds) / 1000;
        // Ten samples, all alike.
        for (auto& e : list.entries) e.statistics = {};
        for (int i = 0; i < 10; ++i) {
            list.totals.add_sample(total / 10);
            for (auto& e : list.entries)
                e.statistics.add_sample(static_cast<std::uint64_t>(e.picoseconds) / 10'000,
                                        total / 10);
        }
        list.totals.unknown = 0;
        REQUIRE(!defect_of(p));
    };
    settle();
    Symbols symbols;

    SUBCASE("both are found, the first ranked by its waiting") {
        const auto found = find_opportunities(p, symbols);
        REQUIRE(found.size() == 2);
        CHECK(found[0].kind->name == "prefetch-load");
        CHECK(found[0].location == 0);
        CHECK(found[0].what ==
              "waits 50 ns (50–50) in each of 20.0k loads, each 4160 bytes after the one before");
        // 20,000 × 50 ns and 10,000 × 80 ns, 3 instructions each, beside the 100,000 themselves.
        CHECK(found[0].touches == doctest::Approx(3e6 / 5.5e6));
        CHECK(found[1].kind->name == "pointer-chase");
        CHECK(found[1].touches == doctest::Approx(2.4e6 / 5.5e6));
        CHECK(found[1].what.find("from where it loaded the time before") != std::string::npos);
    }
    SUBCASE("an index from a table that is read in order is known beforehand") {
        auto& e = list.entries[1];
        e.origin = 0;
        const auto found = find_opportunities(p, symbols);
        REQUIRE(found.size() == 2);
        CHECK(found[1].kind->name == "prefetch-load");
        CHECK(found[1].what.find("by what walk walk.c:16 loads") != std::string::npos);
    }
    SUBCASE("pointers of which each comes from another load") {
        list.entries[0].pattern = AddressPattern::chase;
        list.entries[0].origin = 1;
        list.entries[1].origin = 0;
        for (const auto& f : find_opportunities(p, symbols)) CHECK(f.kind->name == "pointer-chase");
    }
    SUBCASE("random addresses are neither") {
        for (auto& e : list.entries) e.pattern = AddressPattern::random;
        CHECK(find_opportunities(p, symbols).empty());
    }
    SUBCASE("little evidence is none") {
        list.entries[0].square_nanoseconds *= 3000;  // 50 ± 110
        list.entries[1].timed = list.entries[1].by_time[3] = 29;
        list.entries[1].histogram = {};
        list.entries[1].histogram[3] = 29;
        CHECK(find_opportunities(p, symbols).empty());
    }
    SUBCASE("what the model has in the near caches was disturbed") {
        for (auto& e : list.entries) e.by_model = {99, 1, 0, 0};
        CHECK(find_opportunities(p, symbols).empty());
    }
    SUBCASE("what took no longer than the near caches take was not far") {
        for (auto& e : list.entries) e.by_time = {e.timed, 0, 0, 0};
        CHECK(find_opportunities(p, symbols).empty());
    }
    SUBCASE("waiting is told only as far as the function has time by the clock") {
        at(0x2000, "ret");
        p.locations.back().function_offset = 0x2000;
        add_looks(p, 2, 950);
        add_looks(p, 0, 50);
        const auto found = find_opportunities(p, symbols);
        REQUIRE(found.size() == 2);
        for (const auto& f : found) {
            CHECK(f.touches == doctest::Approx(0.05));
            CHECK(f.interval == "3.8–6.5 %");
            CHECK(f.evidence.back().find("by the clock walk has 5.0 %") != std::string::npos);
        }
        *p.find<TimeSection>() = TimeSection{};
        add_looks(p, 2, 50);
        add_looks(p, 0, 950);
        for (const auto& f : find_opportunities(p, symbols))
            CHECK(f.evidence.back().find("by the clock") == std::string::npos);
    }
    SUBCASE("short waiting, and little of it") {
        for (auto& e : list.entries) e.picoseconds = static_cast<std::int64_t>(e.timed * 9000);
        CHECK(find_opportunities(p, symbols).empty());
        p.coverage.instructions = 1'000'000'000;
        p.coverage.weighted_instructions = 1'000'000'000;
        list.entries[0].picoseconds = 50'000 * 2000;
        settle();
        CHECK(find_opportunities(p, symbols).empty());
    }
}

TEST_CASE("a profile of nothing has no opportunities") {
    Symbols symbols;
    CHECK(find_opportunities(Profile{}, symbols).empty());
}

}  // namespace shadowprof::report
