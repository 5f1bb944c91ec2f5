#include "report/text/format.h"

#include <doctest/doctest.h>

#include <chrono>

#include "profile/value/value_words.h"
#include "report/symbols/demangle.h"
#include "report/symbols/find_function.h"
#include "sample_profile.h"

namespace shadowprof::report {

TEST_CASE("counts have three digits that count") {
    CHECK(count_text(0) == "0");
    CHECK(count_text(9999) == "9999");
    CHECK(count_text(10000) == "10.0k");
    CHECK(count_text(123456) == "123k");
    CHECK(count_text(999'499) == "999k");
    CHECK(count_text(999'500) == "1.00M");
    CHECK(count_text(1'234'567'890) == "1.23G");
    CHECK(count_text(~std::uint64_t{0}) == "18.4E");
    CHECK(counted("call", 1) == "1 call");
    CHECK(counted("call", 20000) == "20.0k calls");
}

TEST_CASE(
    "functions that an interpreter executes have their whole names, and are found by the last "
    "part") {
    Profile p;
    p.modules = {{"[ruby]", ""}, {"/usr/bin/ruby", ""}};
    std::uint64_t offset = 0;
    for (const auto* name : {"<main>", "Array#<<", "block in Shape#area", "Shape#scan"}) {
        Location l;
        l.offset = ++offset;
        l.function_offset = l.offset;
        l.function = name;
        p.locations.push_back(l);
        CHECK(function_label(p, l) == name);
    }
    Location native;
    native.module = ModuleIndex{1};
    native.function_offset = native.offset = 9;
    native.function = "rb_str_scan(int)";
    p.locations.push_back(native);
    CHECK(function_label(p, native) == "rb_str_scan");
    const auto found = find_function(p, "scan");
    REQUIRE(found.size() == 1);
    CHECK(found.front().name == "Shape#scan");
    CHECK(find_function(p, "str_scan").front().name == "rb_str_scan(int)");
}

TEST_CASE("shares say neither more nor less than they know") {
    CHECK(share_text(0) == "0 %");
    CHECK(share_text(0.00001) == "<0.01 %");
    CHECK(share_text(0.0042) == "0.42 %");
    CHECK(share_text(0.25) == "25.0 %");
    CHECK(share_text(0.99951) == ">99.9 %");
    CHECK(share_text(1) == "100 %");
    CHECK(interval_text(0.25, 0.5) == "25.0–50.0 %");
}

TEST_CASE("seconds") {
    CHECK(seconds_text(0) == "0 s");
    CHECK(seconds_text(12e-9) == "12.0 ns");
    CHECK(seconds_text(0.0123) == "12.3 ms");
    CHECK(seconds_text(3.21) == "3.21 s");
    CHECK(seconds_text(12345) == "12345 s");
}

TEST_CASE("values are shown as what they are likely to mean") {
    ValueEntry e;
    e.operand = "eax";
    e.bits = 32;
    CHECK(value_text(2, e) == "0x2");
    CHECK(value_text(42, e) == "0x2a (42)");
    CHECK(value_text(0xffffffff, e) == "0xffffffff (-1)");
    CHECK(value_text(0x80000000, e) == "0x80000000");
    e.bits = 8;
    CHECK(value_text(0xfe, e) == "0xfe (-2)");
    e.bits = 64;
    e.operand = "xmm3";
    CHECK(value_text(0x4004000000000000, e) == "2.5");
    CHECK(value_text(0x4000000000000000, e) == "2.0");
    CHECK(value_text(0, e) == "0x0");
    CHECK(value_text(0x7ff8000000000000, e) == "0x7ff8000000000000");
    e.bits = 32;
    CHECK(value_text(0x40200000, e) == "2.5");
    e.kind = ValueKind::address;
    CHECK(value_text(0x40200000, e) == "0x40200000");
}

TEST_CASE("names without what hides them") {
    CHECK(without_parameters("main") == "main");
    CHECK(without_parameters("StubRoutines (2)") == "StubRoutines (2)");
    CHECK(without_parameters("void (anonymous namespace)::f(int)") == "(anonymous namespace)::f");
    CHECK(without_parameters("std::map<int, f(*)(int)>::at(int const&) const") == "std::map::at");
    CHECK(without_parameters("void ns::f<int>(int)") == "ns::f");
    CHECK(without_parameters("(anonymous namespace)::g(char)") == "(anonymous namespace)::g");
    CHECK(without_parameters("f(int)::{lambda(char)#1}::operator()(char) const") ==
          "f::{lambda(char)#1}::operator()");
    CHECK(without_parameters("A::operator<(A const&)") == "A::operator<");
    CHECK(without_parameters("A::operator->()") == "A::operator->");
    CHECK(without_parameters("A::operator<< <int>(int)") == "A::operator<<");
    CHECK(without_parameters("A::operator bool() const") == "A::operator bool");
    CHECK(without_parameters("operator new(unsigned long)") == "operator new");
    CHECK(without_parameters("f(int) [clone .cold]") == "f");
    CHECK(without_parameters("main.(*T).Method") == "main.(*T).Method");
    CHECK(without_parameters("cooperator(int)") == "cooperator");
    CHECK(without_parameters("f(broken") == "f(broken");
    CHECK(without_parameters("") == "");
    CHECK(demangle("_RNvMs0_NtCs5l0EXMQXRMU_4demo5shapeNtB5_6Circle4area") ==
          "<demo::shape::Circle>::area");
    CHECK(demangle("_ZN4demo5shape6Circle4area17h0123456789abcdefE") ==
          "demo::shape::Circle::area");
    CHECK(demangle("_ZN44_$LT$demo..A$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE") ==
          "<demo::A as core::fmt::Debug>::fmt");
    CHECK(without_parameters("<demo::shape::Circle>::area") == "demo::shape::Circle::area");
    CHECK(without_parameters("<demo::A as core::fmt::Debug>::fmt") == "demo::A::fmt");
    CHECK(without_parameters("<alloc::vec::Vec<T> as core::ops::Drop>::drop") ==
          "alloc::vec::Vec::drop");
    CHECK(demangle("_ZN2ns1fEi") == "ns::f(int)");
    CHECK(demangle("_ZN2ns1fEi@plt") == "ns::f(int)@plt");
    CHECK(demangle("memcpy@@GLIBC_2.14") == "memcpy");
    CHECK(demangle("puts@plt") == "puts@plt");
    CHECK(demangle("_Z") == "_Z");
}

TEST_CASE("labels name a place as well as it is known") {
    const auto p = sample_profile();
    CHECK(full_label(p, p.at(3)) == "main müller.c:12");
    CHECK(full_label(p, p.at(5)) == "ns::parse müller.c:30");
    CHECK(full_label(p, p.at(7)) == "[runtime code]+0x7f0000001000");
    CHECK(full_label(p, p.at(8)) == "app+0x2000+0x4");
    const auto same_line = edge_labels(p, p.at(3), p.at(1));
    CHECK(same_line.from == "main+0x10");
    CHECK(same_line.to == "main+0x8");
    const auto same_function = edge_labels(p, p.at(3), p.at(4));
    CHECK(same_function.from == "main müller.c:12");
    CHECK(same_function.to == "müller.c:14");
}

TEST_CASE("values that are told") {
    Profile p;
    p.modules = {{"/program", ""}};
    p.locations.resize(1);
    const auto entry = [&](const char* text, const char* operand, std::uint32_t bits) {
        p.locations[0].text = text;
        ValueEntry e;
        e.operand = operand;
        e.bits = bits;
        e.executions.add_sample(100);
        e.stride = Stride{1, 0.99};
        return e;
    };
    auto loaded = entry("mov rax, [rdi+0x8]", "[rdi+0x8]", 64);
    loaded.kind = ValueKind::loaded;
    CHECK(tells_step(p, loaded));
    // The counters of loops.
    CHECK_FALSE(tells_step(p, entry("add rax, 0x1", "rax", 64)));
    CHECK_FALSE(tells_step(p, entry("inc ecx", "ecx", 32)));
    CHECK_FALSE(tells_step(p, entry("lea rdx, [rdx+0x10]", "rdx", 64)));
    CHECK_FALSE(tells_step(p, entry("lea rdx, [rsi+0x10]", "rdx", 64)));
    CHECK_FALSE(tells_step(p, entry("movsd xmm0, [rdi]", "xmm0", 64)));
    CHECK_FALSE(tells_step(p, entry("addsd xmm0, xmm1", "xmm0", 64)));
    CHECK(regularity_of(p, entry("inc ecx", "ecx", 32)).share.share == 0);
    auto stack = entry("mov rax, [rdi]", "rax", 64);
    Statistics all;
    all.add_sample(100, 100);
    stack.top = {{0x7ffd1234, all}};
    CHECK_FALSE(is_constant_by_construction(p, stack));
    stack.top = {{0x7ffd12345678, all}};
    CHECK(is_constant_by_construction(p, stack));
    auto local = entry("mov rax, [rsp+0x8]", "[rsp+0x8]", 64);
    local.kind = ValueKind::address;
    CHECK(is_constant_by_construction(p, local));
}

TEST_CASE("a symbol that stands for an endless name is left as it is, at once") {
    // Each parameter is a function of two of the parameter before: 2^40 names.
    std::string symbol = "_Z1fPFvvE";
    for (int i = 0; i < 40; ++i)
        symbol +=
            i == 0
                ? "PFS_S_E"
                : "PFS" + std::string(1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(2 * i - 1) % 36]) +
                      "_S" +
                      std::string(1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(2 * i - 1) % 36]) +
                      "_E";
    const auto began = std::chrono::steady_clock::now();
    const auto name = demangle(symbol);
    CHECK(std::chrono::steady_clock::now() - began < std::chrono::milliseconds(500));
    CHECK(name.size() <= 16384);
}

}  // namespace shadowprof::report
