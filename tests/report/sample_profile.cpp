#include "sample_profile.h"

namespace shadowprof::report {

namespace {

// Two samples, of 60 and 40 events of a hotlist whose total is 100.
Totals totals(std::uint64_t unknown) {
    Totals t;
    t.add_sample(60);
    t.add_sample(40);
    t.unknown = unknown;
    return t;
}

Statistics statistics(std::uint64_t in_first, std::uint64_t in_second) {
    Statistics s;
    if (in_first) s.add_sample(in_first, 60);
    if (in_second) s.add_sample(in_second, 40);
    return s;
}

Location location(std::uint64_t offset, std::uint64_t function_offset, std::string function,
                  std::uint32_t line, std::string text) {
    Location l;
    l.offset = offset;
    l.function = std::move(function);
    l.function_offset = function_offset;
    l.file = "/no/such/place/müller.c";
    l.line = line;
    l.text = std::move(text);
    return l;
}

ValueEntry operand_of(LocationIndex location, const char* operand, std::uint32_t index,
                      ValueKind kind, std::uint32_t bits, const Totals& executions,
                      std::uint64_t probability_inverse) {
    ValueEntry e;
    e.location = location;
    e.operand = operand;
    e.operand_index = index;
    e.kind = kind;
    e.bits = bits;
    e.executions = executions;
    e.probability_inverse = probability_inverse;
    return e;
}

}  // namespace

Profile sample_profile() {
    Profile p;
    p.tool = "shadowprof 0.1.0";
    p.host = {"A \"CPU\"\\with\tall\x01", 2, "6.1.0"};
    p.targets.push_back({{"./app", "--input", "a b", "größe"}, 4711, 7, false});
    p.run.mode = "step";
    p.run.profiles = {"path", "edge", "call", "method", "value"};
    p.run.options = {{"limit", "1000"}, {"sample-size", "100"}};
    p.run.seed = 0xfedcba9876543210;
    p.run.started = "2026-01-02T03:04:05Z";
    p.run.duration = 1.5;
    p.run.interrupted = "SIGTERM";
    p.run.warnings = {"a thread was not followed"};
    p.run.failures = {"sample 3 was lost"};
    p.cost = {3, 0.25, 1, 12, 0.75, 0.0125, {}};
    p.coverage = {2, 1200, 100, {{"exit", 1}, {"sample size", 1}}, 1200};
    p.modules = {{"/usr/bin/app", "00ff12"}, {"[runtime code]", ""}};

    p.locations = {
        location(0x1000, 0x1000, "main", 10, "push rbp"),      // 0
        location(0x1008, 0x1000, "main", 12, "call 0x1100"),   // 1
        location(0x100d, 0x1000, "main", 12, "cmp ebx, 0xa"),  // 2
        location(0x1010, 0x1000, "main", 12, "jne 0x1008"),    // 3
        location(0x1012, 0x1000, "main", 14, "ret"),           // 4
        location(0x1100, 0x1100, "ns::parse<int>(std::string const&)", 30, "mov eax, [rdi+0x8]"),
        location(0x1103, 0x1100, "ns::parse<int>(std::string const&)", 31, "ret"),  // 6
    };
    p.locations[5].inlined = {{"inner()", "/no/such/place/inner.h", 7},
                              {"outer()", "/no/such/place/outer.h", 9}};
    Location made;  // 7
    made.module = 1;
    made.offset = 0x7f0000001000;
    made.content = 2;
    made.text = "addsd xmm0, xmm1";
    p.locations.push_back(made);
    Location unnamed;  // 8
    unnamed.offset = 0x2004;
    unnamed.function_offset = 0x2000;
    unnamed.text = "inc rax";
    p.locations.push_back(unnamed);
    auto caller = location(0x100d, 0x1000, "main", 12, "");  // 9
    caller.return_address = true;
    p.locations.push_back(caller);

    const Statistics none;
    auto& time = p.add<TimeSection>();
    time.totals = totals(5);
    time.waiting = totals(30);
    time.entries = {{"app", profile::ThreadState::user, "", {5, 9}, statistics(50, 20), none},
                    {"pool", profile::ThreadState::lock, "futex", {}, none, statistics(30, 40)},
                    {"app", profile::ThreadState::kernel, "read", {0}, statistics(5, 20), none}};
    // As `parse` is called by main alone, it costs the same in all as on behalf of main.
    using Root = profile::ContextRoot;
    p.add<ContextSection>() = {
        totals(5),
        {{Root::thread, {0}, 1, statistics(5, 10), statistics(55, 40)},
         {Root::thread, {0, 5}, 90, statistics(50, 30), statistics(50, 30)}}};
    p.add<CallerSection>() = {totals(0),
                              {{0, {}, 1, statistics(55, 40)},
                               {5, {}, 90, statistics(50, 30)},
                               {5, 0, 90, statistics(50, 30)}}};
    p.add<PathSection>() = {totals(20),
                            {{{{1, 1, 1}, {5, 6, 2}, {2, 3, 2}}, statistics(50, 20)},
                             {{{7, 7, 1}, {7, 7, 1}, {7, 7, 1}}, statistics(6, 4)}}};
    p.find<PathSection>()->dropped = 2;
    p.add<EdgeSection>() = {totals(0),
                            {{1, 5, EdgeKind::call, statistics(20, 10)},
                             {3, 1, EdgeKind::taken, statistics(19, 9)},
                             {6, 2, EdgeKind::return_, statistics(15, 15)},
                             {7, 8, EdgeKind::indirect, statistics(5, 5)},
                             {3, 4, EdgeKind::fallthrough, statistics(1, 1)}}};
    p.add<CallSection>() = {totals(10), {{1, 5, statistics(55, 35)}}};
    p.add<MethodSection>();
    p.find<MethodSection>()->totals = totals(3);
    p.find<MethodSection>()->instructions = totals(8);
    p.find<MethodSection>()->entries = {
        {5, statistics(40, 20), 60, 1, 0, statistics(30, 12)},
        {0, statistics(17, 20), 1, 0, 36, statistics(25, 25)},
    };

    auto loaded = operand_of(5, "eax", 0, ValueKind::register_, 32, totals(2), 4);
    loaded.context = 9;
    loaded.top = {{0x2, statistics(58, 32)}, {0xffffffff, statistics(0, 8)}};
    auto real = operand_of(7, "xmm0", 0, ValueKind::register_, 64, totals(50), 1);
    real.top = {{0x4004000000000000, statistics(30, 20)}};
    auto address = operand_of(5, "[rdi+0x8]", 1, ValueKind::address, 64, totals(100), 1);
    address.stride = Stride{-16, 0.875};
    p.add<ValueSection>();
    p.find<ValueSection>()->entries = {loaded, real, address};
    for (std::uint64_t n : {180, 120}) p.find<ValueSection>()->totals.add_sample(n);
    return p;
}

Profile partial_profile() {
    auto p = sample_profile();
    p.run.mode = "burst";
    p.run.profiles = {"path", "edge", "call", "value"};
    p.coverage.instructions = 300;
    p.coverage.weighted_instructions = 300;
    p.remove<MethodSection>();
    p.find<PathSection>()->entries.pop_back();
    p.find<PathSection>()->totals.unknown = 30;
    p.find<EdgeSection>()->entries.resize(2);
    p.find<EdgeSection>()->entries[0].statistics = statistics(30, 20);
    p.find<EdgeSection>()->totals.unknown = 22;
    p.find<EdgeSection>()->dropped = 3;
    p.find<CallSection>()->entries[0].statistics = statistics(30, 15);
    p.find<CallSection>()->totals.unknown = 55;
    auto& top = p.find<ValueSection>()->entries[0].top;
    top.pop_back();
    top[0].statistics = statistics(50, 25);
    p.find<ValueSection>()->entries[0].executions.unknown = 25;
    return p;
}

}  // namespace shadowprof::report
