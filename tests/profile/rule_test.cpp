#include <doctest/doctest.h>

#include <map>
#include <string>
#include <tuple>

#include "../hexadecimal.h"
#include "base/error.h"
#include "decoder/decoder.h"
#include "profile/rule/rule_parser.h"
#include "profile/rule/rule_reader.h"
#include "profile/rule/rule_tally.h"
#include "test_program.h"

namespace shadowprof::profile {

namespace {

// Text of the error, and the character that it points at.
std::pair<std::string, std::size_t> error_of(const std::string& text) {
    try {
        parse_rule(text);
    } catch (const RuleError& error) {
        return {error.what(), error.position};
    }
    return {"", 0};
}

// Functions of 256 bytes, called f1, f2, … by their number in hexadecimal; all of one file.
// Two take locks and give them back.
class TestNames : public PlaceNames {
  public:
    bool fits(NameOf what, const std::string& glob, const Location& place) override {
        if (what == NameOf::module) return glob == "/*" || glob == "program";
        if (what == NameOf::file) return glob == "program.c";
        const auto name = name_of(place).function;
        if (glob == "*pthread_*") return name.find("pthread_") != name.npos;
        return glob == "f*" || glob == name;
    }
    PlaceName name_of(const Location& place) override {
        const auto number = place.offset / 0x100;
        auto name = "f" + std::to_string(number);
        if (number == 0xe) name = "pthread_mutex_lock";
        if (number == 0xf) name = "__pthread_mutex_unlock";
        return {name, place.offset % 0x100, "program"};
    }
};

// Real instructions. Two functions: at 0x100 a loop that calls the one at 0x200.
struct Program {
    trace::BlockTable table;
    TestNames names;
    EvenlySpacedFunctions functions{0x100};
    RuleParameters parameters;
    RuleSet rules{parameters, names, functions};

    explicit Program(const std::vector<std::string>& texts) : parameters(parsed(texts)) {}

    static std::vector<Rule> parsed(const std::vector<std::string>& texts) {
        std::vector<Rule> rules;
        for (const auto& text : texts) rules.push_back(parse_rule(text));
        return rules;
    }
    BlockId block(std::uint64_t start, const std::vector<std::string>& code) {
        trace::Block block;
        block.start = Address{start};
        block.place = at(start);
        for (const auto& bytes : code) {
            const auto next = block.instructions.empty() ? block.start : block.end();
            block.instructions.push_back(*decoder::decode(bytes_of(bytes), next));
        }
        block.exit = trace::exit_of(block.instructions);
        const auto plan =
            rules.any_reads_values() ? trace::CapturePlan::of_chosen(rules) : trace::CapturePlan();
        block.slots = trace::slots_of(block.instructions, plan, block.place);
        return table.publish(std::move(block)).id;
    }
    RuleHotlist read(const TestTrace& trace, std::uint64_t seed = 1) {
        RuleTally tally{table, rules, seed};
        RuleReader reader{tally, trace.start};
        reader.digest(trace.all);
        reader.finish(trace.end);
        tally.end_sample(trace.start.sample, 1);
        Hotlists lists;
        tally.yield(lists, Seen::everything, [](std::int32_t n) { return std::to_string(n); });
        return *lists.find<RuleHotlist>();
    }
};

// By rule and place, and where there is one, target.
using EventCounts = std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, std::uint64_t>;
EventCounts counts_of(const RuleHotlist& list) {
    EventCounts counts;
    for (const auto& e : list.entries)
        counts[{e.rule, e.at.offset, e.target ? e.target->offset : 0}] += e.statistics.count;
    return counts;
}

using CountsByState = std::map<std::string, std::uint64_t>;
CountsByState counts_by_state(const RuleHotlist& list, const std::string& rule) {
    CountsByState counts;
    for (const auto& e : list.entries)
        if (e.rule == rule) counts[state_text(e.state)] += e.statistics.count;
    return counts;
}

// 0x100: mov rdi, rbx; call 0x200     0x108: test eax, eax; jne 0x100     0x10c: ret
// 0x200: mov rax, [rdi]; ret
struct Loop {
    BlockId call, test, end, callee;
    explicit Loop(Program& program)
        : call(program.block(0x100, {"48 89 df", "e8 f8 00 00 00"})),
          test(program.block(0x108, {"85 c0", "75 f4"})),
          end(program.block(0x10c, {"c3"})),
          callee(program.block(0x200, {"48 8b 07", "c3"})) {}
};

}  // namespace

TEST_CASE("rules that are read") {
    const auto calls = parse_rule("png: call to \"png_*\" => value(arg 2)");
    CHECK(calls.name == "png");
    CHECK(calls.text == "call to \"png_*\" => value(arg 2)");
    CHECK(calls.pattern.kind == Pattern::Kind::both);
    CHECK(calls.pattern.parts[1].text == "png_*");
    CHECK(calls.value == RuleOperand{RuleOperand::Kind::argument, 1});

    const auto stores = parse_rule("s:store in module \"libfoo.so\" && bytes == 16 => count");
    CHECK(stores.pattern.kind == Pattern::Kind::both);
    CHECK(stores.pattern.parts[1].kind == Pattern::Kind::bytes);
    CHECK(stores.pattern.parts[0].parts[1].name == NameOf::module);
    CHECK_FALSE(stores.value);

    const auto divisions = parse_rule("d: mnemonic div => value(op 2) by return address, thread");
    CHECK(divisions.by.return_address);
    CHECK(divisions.by.thread);

    const auto bursts = parse_rule("b[sparsity=1000,burst=50]: branch back => count at function");
    CHECK(bursts.sparsity == 1000);
    CHECK(bursts.burst == 50);
    CHECK(bursts.at == Rule::At::function);

    // && binds stronger than ||, and ! than both.
    const auto precedence = parse_rule("p: load || !store && any => count").pattern;
    CHECK(precedence.kind == Pattern::Kind::either);
    CHECK(precedence.parts[1].kind == Pattern::Kind::both);
    CHECK(precedence.parts[1].parts[0].kind == Pattern::Kind::not_);
    const auto grouped = parse_rule("g: (load || store) && arg 2 > 4k => count").pattern;
    CHECK(grouped.kind == Pattern::Kind::both);
    CHECK(grouped.parts[1].number.bits == 4096);
    CHECK(parse_rule("n: rax < -1 => count").pattern.number == RuleNumber{~std::uint64_t{0}, true});
    CHECK(parse_rule("h: return == 0x10 => count").pattern.number.bits == 16);
    CHECK(parse_rule("r: return => value(return)").pattern.kind == Pattern::Kind::return_);
}

TEST_CASE("mistakes in rules are pointed at") {
    const struct {
        const char* text;
        std::size_t at;
        const char* says;
    } all[]{
        {"", 0, "begins with its name"},
        {"any => count", 4, "':'"},
        {"a: => count", 3, "pattern is missing"},
        {"a: any", 6, "'=>'"},
        {"a: any => ", 10, "action"},
        {"a: any => sum", 10, "action"},
        {"a: anything => count", 3, "'anything' is no pattern"},
        {"a: call to => count", 11, "name is missing"},
        {"a: call to \"f => count", 11, "closing quote"},
        {"a: (load => count", 9, "')' is missing for the '(' at 4"},
        {"a: load && => count", 11, "pattern is missing"},
        {"a: bytes = 16 => count", 9, "comparison"},
        {"a: bytes == x => count", 12, "number"},
        {"a: arg 7 > 1 => count", 7, "from 1 to 6"},
        {"a: any => value(arg 0)", 20, "from 1 to 6"},
        {"a: any => value arg 1", 16, "parentheses"},
        {"a: any => value(xmm0)", 16, "a value is"},
        {"a: any => count by colour", 19, "target, return address, caller, thread"},
        {"a: any => count by caller, return address", 34, "exclude each other"},
        {"a: any => stream by thread", 17, "by nothing else"},
        {"a: any => stream at function", 17, "by nothing else"},
        {"a: any => count by return", 25, "'address'"},
        {"a: any => count at home", 19, "after 'at'"},
        {"a: any => count count", 16, "nothing can follow"},
        {"a[burst=0]: any => count", 8, "from 1"},
        {"a[length=1]: any => count", 2, "sparsity and burst"},
        {"a[burst=1: any => count", 9, "']'"},
        {"a: load $ => count", 8, "unexpected '$'"},
        {"a: in file \"x\" => count", 3, "no pattern"},
        {"a: load in \"x\" => count", 11, "function, file or module"},
        {"a: arg 1 > 99999999999999999999 => count", 11, "64 bits"},
        {"a*: any => count", 0, "letters, digits"},
    };
    for (const auto& each : all) {
        CAPTURE(each.text);
        const auto [what, position] = error_of(each.text);
        CHECK(position == each.at);
        CHECK(what.find(each.says) != what.npos);
    }
    const std::string deep = "a: " + std::string(1000, '(') + "any => count";
    CHECK(error_of(deep).first == "too many parentheses");
}

TEST_CASE("an option's mistake is shown with a caret") {
    try {
        parse_rule_option("a: lode => count");
        FAIL("no error");
    } catch (const UserError& error) {
        const std::string text = error.what();
        CHECK(text.ends_with("\n  a: lode => count\n     ^"));
        CHECK(error.status() == ExitStatus::bad_usage);
    }
}

TEST_CASE("a file of rules") {
    const auto rules = parse_rules_file("r.txt",
                                        "# what libraries allocate\n"
                                        "sizes: call to \"malloc#1\"  # the name has a sign\n"
                                        "  => value(arg 1)\n"
                                        "\n"
                                        "loops: branch back => count\n");
    REQUIRE(rules.size() == 2);
    CHECK(rules[0].pattern.parts[1].text == "malloc#1");
    CHECK(rules[1].name == "loops");
    try {
        parse_rules_file("r.txt", "a: any => count\nb: any\n  => sum\n");
        FAIL("no error");
    } catch (const UserError& error) {
        const std::string text = error.what();
        CHECK(text.starts_with("r.txt:3: "));
        CHECK(text.ends_with("\n    => sum\n       ^"));
    }
}

TEST_CASE("numbers are compared as they are written") {
    CHECK(compare(5, Comparison::less, {6, false}));
    CHECK_FALSE(compare(~0ull, Comparison::less, {6, false}));
    CHECK(compare(~0ull, Comparison::equal, {~0ull, true}));
    CHECK(compare(static_cast<std::uint64_t>(-3), Comparison::less, {~0ull, true}));
    CHECK_FALSE(compare(3, Comparison::less, {~0ull, true}));
}

TEST_CASE("what a pattern says of instructions") {
    const struct {
        const char* pattern;
        const char* bytes;
        Truth truth;
    } all[]{
        {"load", "48 8b 03", Truth::yes},  // mov rax, [rbx]
        {"load", "48 89 03", Truth::no},   // mov [rbx], rax
        {"store && bytes == 8", "48 89 03", Truth::yes},
        {"store && bytes < 8", "48 89 03", Truth::no},
        {"load", "48 8d 03", Truth::no},               // lea rax, [rbx]
        {"mnemonic div", "48 f7 f1", Truth::yes},      // div rcx
        {"mnemonic i?ul", "48 0f af c1", Truth::yes},  // imul rax, rcx
        {"extension SSE2", "f2 0f 58 c1", Truth::yes},
        {"class *arithmetic", "48 01 d8", Truth::yes},
        {"branch", "eb 10", Truth::yes},      // jmp: always taken
        {"branch", "75 10", Truth::depends},  // jne
        {"branch back", "75 10", Truth::no},
        {"branch back", "75 f0", Truth::depends},
        {"branch forward", "75 f0", Truth::no},
        {"conditional", "75 10", Truth::yes},
        {"call", "e8 00 00 00 00", Truth::yes},
        {"call to f2", "e8 fb 00 00 00", Truth::yes},  // from 0x100 to 0x200
        {"call to f3", "e8 fb 00 00 00", Truth::no},
        {"call to f2", "ff d0", Truth::depends},  // call rax
        {"call to f2", "48 01 d8", Truth::no},
        {"local", "e8 fb 00 00 00", Truth::no},
        {"local", "eb 10", Truth::yes},
        {"syscall", "0f 05", Truth::yes},
        {"function f1 && file program.c", "90", Truth::yes},
        {"function f2", "90", Truth::no},
        {"rax == 3", "90", Truth::depends},
        {"!(rax == 3) && load", "90", Truth::no},
        {"any || rax == 3", "90", Truth::yes},
        {"op 2 == 5", "48 83 c0 05", Truth::yes},  // add rax, 5
        {"op 2 == 6", "48 83 c0 05", Truth::no},
        {"memory == 0", "48 01 d8", Truth::no},  // it has none
        {"immediate", "48 83 c0 05", Truth::yes},
        {"immediate", "48 01 d8", Truth::no},
        {"immediate", "75 10", Truth::no},  // where it leads is no number of it
        {"immediate == 5", "48 83 c0 05", Truth::yes},
        {"immediate == 6", "48 83 c0 05", Truth::no},
        {"store && immediate == 0", "c7 03 00 00 00 00", Truth::yes},  // mov dword [rbx], 0
        {"store && immediate == 0", "89 03", Truth::no},               // mov [rbx], eax
    };
    for (const auto& each : all) {
        CAPTURE(each.pattern);
        CAPTURE(each.bytes);
        Program program{{std::string("r: ") + each.pattern + " => count"}};
        const auto instruction = decoder::decode(bytes_of(each.bytes), Address{0x100});
        REQUIRE(instruction);
        CHECK(program.rules.holds(program.rules.rules()[0], {*instruction, at(0x100)}) ==
              each.truth);
    }
}

TEST_CASE("only what rules need is captured") {
    Program none{{"r: call => count by target"}};
    CHECK_FALSE(none.rules.any_reads_values());
    CHECK(none.table.at(none.block(0x100, {"48 89 df", "e8 f8 00 00 00"})).slots.empty());

    Program arguments{{"r: call to f2 => value(arg 1)"}};
    const auto slots =
        arguments.table.at(arguments.block(0x100, {"48 8b 07", "e8 f8 00 00 00"})).slots;
    REQUIRE(slots.size() == 1);
    CHECK(slots[0] == trace::Slot{trace::Capture::register_before, 1, decoder::rdi, 64});
    // Calls of others cost nothing.
    CHECK(arguments.table.at(arguments.block(0x300, {"e8 f8 00 00 00"})).slots.empty());
}

TEST_CASE("events are counted by place, target and function") {
    Program program{{"pairs: call => count by target",
                     "methods: call || branch back && local => count at target function",
                     "loads: load in function f2 => count", "taken: branch => count",
                     "returns: return => count at function"}};
    const Loop loop{program};
    TestTrace trace;
    for (int n = 0; n < 3; ++n) trace.run({loop.call, loop.callee, loop.test});
    trace.run(loop.end).stop_before(0x500);
    const auto list = program.read(trace);
    CHECK(counts_of(list) == EventCounts{{{"pairs", 0x103, 0x200}, 3},
                                         {{"methods", 0x200, 0}, 3},
                                         {{"methods", 0x100, 0}, 2},
                                         {{"loads", 0x200, 0}, 3},
                                         {{"taken", 0x10a, 0}, 2},
                                         {{"returns", 0x200, 0}, 3},
                                         {{"returns", 0x100, 0}, 1}});
    for (const auto& rule : list.parts) {
        CHECK(rule.totals.unknown == 0);
        CHECK(rule.totals.exhaustive);
        CHECK(rule.stands_for == rule.totals.total);
    }
    CHECK(list.totals.total == 3 + 5 + 3 + 2 + 4);
}

TEST_CASE("counted and read in order, rules say the same") {
    const std::vector<std::string> texts{
        "pairs: call => count by target",
        "methods: call || branch back && local => count at target function"};
    Program program{texts};
    const Loop loop{program};
    RuleTally tally{program.table, program.rules, 1};
    auto& sample = tally.open(trace::SampleId{0});
    const auto pass = [&](BlockId from, BlockId to, std::uint64_t times) {
        const auto& next = program.table.at(to);
        tally.count(sample, program.table.at(from), next.start, next.place, times);
    };
    pass(loop.call, loop.callee, 3);
    pass(loop.callee, loop.test, 3);
    pass(loop.test, loop.call, 2);
    pass(loop.test, loop.end, 1);
    tally.end_sample(trace::SampleId{0}, 1);
    Hotlists lists;
    tally.yield(lists, Seen::everything, nullptr);

    TestTrace trace;
    for (int n = 0; n < 3; ++n) trace.run({loop.call, loop.callee, loop.test});
    trace.run(loop.end).stop_before(0x500);
    CHECK(counts_of(*lists.find<RuleHotlist>()) == counts_of(program.read(trace)));
}

TEST_CASE("values, conditions on values, and what calls return") {
    Program program{{"args: call to f2 => value(arg 1)", "large: call && arg 1 > 1k => count",
                     "results: call to f2 => value(return)", "zero: call && return == 0 => count",
                     "loaded: load => value(memory)"}};
    const Loop loop{program};
    // Slots: of the call rdi; of the load its bytes; of returns rax.
    REQUIRE(program.table.at(loop.call).slots.size() == 1);
    REQUIRE(program.table.at(loop.callee).slots.size() == 2);
    REQUIRE(program.table.at(loop.end).slots.size() == 1);
    TestTrace trace;
    trace.run(loop.call, {0x1000}).run(loop.callee, {5, 5}).run(loop.test);
    trace.run(loop.call, {0x2000}).run(loop.callee, {5, 5}).run(loop.test);
    trace.run(loop.call, {8}).run(loop.callee, {0, 0}).run(loop.test);
    // The last one never returns.
    trace.run(loop.call, {8}).stop_before(0x200);
    const auto list = program.read(trace);
    CHECK(counts_of(list) == EventCounts{{{"args", 0x103, 0}, 4},
                                         {{"large", 0x103, 0}, 2},
                                         {{"results", 0x103, 0}, 3},
                                         {{"zero", 0x103, 0}, 1},
                                         {{"loaded", 0x200, 0}, 3}});
    for (const auto& e : list.entries) {
        if (e.rule == "large" || e.rule == "zero") CHECK(e.values.executions.total == 0);
        if (e.rule == "args") {
            CHECK(e.values.executions.total == 4);
            CHECK(e.values.top.front().value == 8);
            CHECK(e.values.top.front().statistics.count == 2);
        }
        if (e.rule == "results") {
            CHECK(e.values.executions.total == 3);
            CHECK(e.values.top.front().value == 5);
        }
    }
    CHECK(list.find_part("results")->totals.total == 4);
    CHECK(list.find_part("results")->totals.unknown == 1);
    CHECK(list.find_part("zero")->totals.unknown == 1);
}

TEST_CASE("events are told apart by return address, caller and the last system call") {
    Program program{{"where: load => count by return address", "who: load => count by caller",
                     "after: load => count by syscall"}};
    const Loop loop{program};
    const auto call = program.block(0x300, {"0f 05"});  // syscall
    TestTrace trace;
    trace.start.call_stack = {at(0x100), at(0x405)};
    trace.run(loop.call).run(loop.callee).run(loop.test);
    trace.interrupt(0x300).run(call, {39}).interrupt(0x100);
    trace.run(loop.call).run(loop.callee).run(loop.test).stop_before(0x100);
    const auto list = program.read(trace);
    std::map<std::string, std::uint64_t> counts;
    for (const auto& e : list.entries) {
        const auto& from = e.rule == "who" ? e.caller : e.return_address;
        counts[e.rule + " " + std::to_string(from ? from->offset : 0) + " " +
               state_text(e.state)] += e.statistics.count;
    }
    CHECK(counts == std::map<std::string, std::uint64_t>{{"where 264 ", 2},  // 0x108
                                                         {"who 256 ", 2},    // 0x100
                                                         {"after 0 ", 1},
                                                         {"after 0 after 39", 1}});
}

TEST_CASE("events are told apart by what is so of the thread") {
    Program program{{"all: load => count by thread, tid, processor, scheduling",
                     "one: load => count by processor"}};
    const Loop loop{program};
    RuleTally tally{program.table, program.rules, 1};
    const auto read = [&](std::uint32_t n, const std::string& thread, trace::ThreadState state,
                          std::optional<trace::ThreadState> later) {
        TestTrace trace{0, n};
        trace.start.thread = thread;
        trace.start.state = state;
        trace.run(loop.callee).stop_before(0x108);
        RuleReader reader{tally, trace.start};
        reader.digest(trace.all);
        trace.all.state = later;
        reader.digest(trace.all);
        reader.finish(trace.end);
    };
    read(0, "main", {10, 0, 0}, {});
    read(1, "worker", {11, 1, 3}, {{11, 2, 3}});  // moved
    read(2, "", {}, {});
    tally.end_sample(trace::SampleId{0}, 1);
    Hotlists lists;
    tally.yield(lists, Seen::everything, [](std::int32_t n) { return std::to_string(n); });
    std::map<std::string, std::uint64_t> counts;
    for (const auto& e : lists.find<RuleHotlist>()->entries)
        counts[e.rule + ": " + state_text(e.state)] += e.statistics.count;
    CHECK(counts ==
          std::map<std::string, std::uint64_t>{{"all: main, thread 10, processor 0, other", 2},
                                               {"all: worker, thread 11, processor 1, batch", 1},
                                               {"all: worker, thread 11, processor 2, batch", 1},
                                               {"all: ", 2},
                                               {"one: processor 0", 2},
                                               {"one: processor 1", 1},
                                               {"one: processor 2", 1},
                                               {"one: ", 2}});
}

TEST_CASE("events are told apart by errno, where it is known") {
    Program program{{"errors: load => count by errno", "all: load => count"}};
    const auto load = program.block(0x200, {"48 8b 07", "c3"});
    const auto& slots = program.table.at(load).slots;
    REQUIRE(slots.size() == 1);
    CHECK(slots[0].kind == trace::Capture::error_before);
    TestTrace trace;
    for (const std::uint64_t captured : {0, 1, 1, 12}) trace.run(load, {captured});
    trace.stop_before(0x108);
    CHECK(counts_by_state(program.read(trace), "errors") ==
          CountsByState{{"", 1}, {"errno 0", 2}, {"errno EAGAIN", 1}});
}

TEST_CASE("events are told apart by the signal handlers that the thread is in") {
    Program program{{"seen: load => count by signals"}};
    const auto load = program.block(0x200, {"48 8b 07", "75 fb"});
    REQUIRE(program.table.at(load).slots.size() == 1);
    TestTrace trace;
    trace.run(load, {0x7000});
    trace.interrupt(0x205, {0x6000, 0x7000}).run(load, {0x5ff0});
    trace.interrupt(0x205, {0x5000, 0x5f00}).run(load, {0x4ff0});
    trace.interrupt(0x205, {0x5f00}).run(load, {0x4ff0});
    trace.run(load, {0x6f00}).run(load, {0x4ff0});  // longjmp
    trace.stop_before(0x205);
    const auto found = [&] { return counts_by_state(program.read(trace), "seen"); };
    using Found = CountsByState;
    CHECK(found() == Found{{"", 6}});
    trace.start.signals.emplace();
    CHECK(found() ==
          Found{{"signal handlers 0", 3}, {"signal handlers 1", 2}, {"signal handlers 2", 1}});
    trace.start.signals->enter({0x9000, 0xa000});
    CHECK(found() ==
          Found{{"signal handlers 1", 3}, {"signal handlers 2", 2}, {"signal handlers 3", 1}});
}

TEST_CASE("events are told apart by the locks that the thread holds") {
    Program program{{"seen: load => count by locks"}};
    const auto load = program.block(0x200, {"48 8b 07", "75 fb"});
    const auto takes = program.block(0x100, {"48 89 df", "e8 f8 0c 00 00"});  // call 0xe00
    const auto behind = program.block(0x108, {"48 8b 07", "75 fb"});
    const auto gives_back = program.block(0x110, {"e8 eb 0d 00 00"});  // call 0xf00
    const auto lock = program.block(0xe00, {"c3"});
    const auto unlock = program.block(0xf00, {"c3"});
    REQUIRE(program.table.at(lock).slots.size() == 2);  // rax, rdi
    constexpr std::uint64_t one = 0x9000, other = 0xa000, busy = 16;
    TestTrace trace;
    trace.run(load).run(takes).run(lock, {busy, one}).run(behind);
    trace.run(takes).run(lock, {0, one}).run(behind).run(behind);
    trace.run(takes).run(lock, {0, other}).run(behind);
    trace.run(gives_back).run(unlock, {0, one}).run(load);
    trace.run(gives_back).run(unlock, {0, other}).run(load).stop_before(0x205);
    const auto found = [&] { return counts_by_state(program.read(trace), "seen"); };
    using Found = CountsByState;
    CHECK(found() == Found{{"", 3},
                           {"locks 1 or more (f144)", 2},
                           {"locks 2 or more (f160)", 1},
                           {"locks 1 or more (f160)", 1}});
    trace.from_thread_start();
    CHECK(
        found() ==
        Found{{"locks 0", 3}, {"locks 1 (f144)", 2}, {"locks 2 (f160)", 1}, {"locks 1 (f160)", 1}});
}

TEST_CASE("references of a rule's instructions become streams") {
    Program program{{"walk: load => stream", "none: store => stream"}};
    const auto load = program.block(0x200, {"48 8b 07", "75 f0"});      // mov rax, [rdi]; jne
    const auto other = program.block(0x300, {"48 8b 4c 24 08", "c3"});  // mov rcx, [rsp+8]
    TestTrace trace;
    constexpr std::uint64_t rounds = 100;
    for (std::uint64_t n = 0; n < rounds; ++n) {
        for (const std::uint64_t address : {0x5000, 0x9040, 0x7080, 0x50c0, 0xa100})
            trace.run(load, {address});
        trace.run(other, {0x7ff0});
    }
    trace.stop_before(0x200);
    const auto list = program.read(trace);
    REQUIRE(list.entries.size() == 1);
    const auto& e = list.entries.front();
    CHECK(e.rule == "walk");
    CHECK(e.at == at(0x200));
    REQUIRE(e.stream);
    CHECK(e.stream->references.size() == 5);
    CHECK(e.stream->references[0].step == 0);
    CHECK(e.stream->times >= rounds - 1);
    CHECK(e.stream->lines == 5 * e.stream->times);
    CHECK(e.statistics.count >= 5 * (rounds - 1));
    // What is on the stack is near, and in no stream.
    const auto& totals = list.find_part("walk")->totals;
    CHECK(totals.total == 6 * rounds);
    CHECK(totals.unknown == totals.total - e.statistics.count);
    CHECK(list.find_part("none")->totals.total == 0);
}

TEST_CASE("a rule with bursts sees so many events of so many, and says what they stand for") {
    for (const std::uint32_t burst : {1u, 10u, 50u}) {
        Program program{{"pairs[sparsity=" + std::to_string(99 * burst) +
                         ",burst=" + std::to_string(burst) + "]: call => count by target"}};
        const Loop loop{program};
        TestTrace trace;
        // Two events a round: the call and the branch.
        constexpr std::uint64_t rounds = 100'000;
        for (std::uint64_t n = 0; n < rounds; ++n) trace.run({loop.call, loop.callee, loop.test});
        trace.stop_before(0x100);
        const auto list = program.read(trace, burst);
        const auto& rule = *list.find_part("pairs");
        CAPTURE(burst);
        CHECK_FALSE(rule.totals.exhaustive);
        // Of 200,000 events one in a hundred is looked at; half of them are calls.
        CHECK(rule.totals.total > rounds * 7 / 1000);
        CHECK(rule.totals.total < rounds * 13 / 1000);
        CHECK(rule.stands_for > rounds * 9 / 10);
        CHECK(rule.stands_for < rounds * 11 / 10);
    }
}

TEST_CASE("parameters change while a Trace is read") {
    Program program{{"loads: load => count"}};
    program.parameters.let_change();
    const Loop loop{program};
    RuleTally tally{program.table, program.rules, 1};
    TestTrace trace;
    trace.run({loop.call, loop.callee, loop.test}).stop_before(0x100);
    RuleReader reader{tally, trace.start};
    reader.digest(trace.all);
    program.parameters.set(0, {.enabled = false});
    reader.digest(trace.all);
    program.parameters.set(0, {.enabled = true, .sparsity = most_sparsity, .burst = 1});
    reader.digest(trace.all);
    program.parameters.set(0, {.enabled = true});
    reader.digest(trace.all);
    reader.finish(trace.end);
    tally.end_sample(trace.start.sample, 1);
    Hotlists lists;
    tally.yield(lists, Seen::everything, nullptr);
    const auto& list = *lists.find<RuleHotlist>();
    CHECK(counts_of(list) == EventCounts{{{"loads", 0x200, 0}, 2}});
    CHECK_FALSE(list.parts[0].totals.exhaustive);
}

}  // namespace shadowprof::profile
