#include "model/utf8.h"

#include <doctest/doctest.h>

#include <ctime>
#include <string>

#include "model/run_facts.h"

namespace shadowprof::model {

TEST_CASE("what is UTF-8 and what is not") {
    CHECK(is_utf8("plain, größe, 中文, \U0001f600"));
    for (const char* bad : {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf0\x80\x80\xaf",
                            "\xf4\x90\x80\x80", "\xe4\xb8", "\xff"}) {
        CAPTURE(bad);
        CHECK(!is_utf8(bad));
    }
    for (const char32_t c : {U'a', U'ß', U'中', U'\U0001f600', U'\U0010ffff'}) {
        std::string text;
        append_utf8(text, c);
        CHECK(next_code_point(text).code_point == c);
        CHECK(next_code_point(text).bytes == text.size());
    }
}

TEST_CASE("columns are those of a terminal") {
    CHECK(columns_of("größe") == 5);
    CHECK(columns_of("gro\u0308\u00dfe") == 5);  // a combining mark
    CHECK(columns_of("中文") == 4);
    CHECK(columns_of("→–×…") == 4);
    CHECK(columns_of("") == 0);
}

TEST_CASE("nothing printable drives the terminal") {
    CHECK(printable("a\x1b[31mb\x07\x7f\tc\n") == "a\ufffd[31mb\ufffd\ufffd c\ufffd");
    CHECK(printable("\u009b31m") == "\ufffd31m");
    CHECK(printable("\u202eexe.txt") == "\ufffdexe.txt");
    CHECK(printable("\xff") == "\ufffd");
}

TEST_CASE("a word has no separators of its format") {
    CHECK(printable_word("a;b\n;c", ";", ':') == "a:b\ufffd:c");
    CHECK(printable_word("f\t1:9 !#", " :!#", '_') == "f_1_9___");
}

TEST_CASE("names are cut in the middle, at whole characters") {
    CHECK(shorten_middle("abcdefghij", 10) == "abcdefghij");
    CHECK(shorten_middle("abcdefghij", 6) == "ab…hij");
    CHECK(shorten_end("abcdefghij", 6) == "abcde…");
    CHECK(shorten_end("abc", 0).empty());
    for (const std::string text :
         {"std::vector<größe>::push_back", "中文中文中文中文", "a中b中c中d中"})
        for (std::size_t width = 0; width < 40; ++width) {
            CAPTURE(width);
            for (const auto& cut : {shorten_middle(text, width), shorten_end(text, width)}) {
                CHECK(columns_of(cut) <= width);
                CHECK(is_utf8(cut));
                // Room is not wasted: a wide character may fail to fit at each side.
                if (columns_of(text) > width) CHECK(columns_of(cut) + 2 >= width);
            }
        }
}

TEST_CASE("of long names the scopes are cut first") {
    CHECK(shorten_name("std::vector::push_back", 22) == "std::vector::push_back");
    CHECK(shorten_name("std::vector::push_back", 21) == "…vector::push_back");
    CHECK(shorten_name("std::vector::push_back", 18) == "…vector::push_back");
    CHECK(shorten_name("std::vector::push_back vector.h:12", 29) == "…push_back vector.h:12");
    CHECK(shorten_name("(anonymous namespace)::f f.c:1", 10) == "…f f.c:1");
    // What does not help is no reason to lose the beginning.
    CHECK(shorten_name("ns::f f.c:1 called from main m.c:20", 20) ==
          shorten_middle("ns::f f.c:1 called from main m.c:20", 20));
    CHECK(shorten_name("f f.c:1 called from ns::main", 20) ==
          shorten_middle("f f.c:1 called from ns::main", 20));
    CHECK(shorten_name("größe::größe", 7) == "…größe");
    for (const std::string text :
         {"std::vector<größe>::push_back", "中文::中文::中文", "((::", "::"})
        for (std::size_t width = 0; width < 40; ++width) {
            CHECK(columns_of(shorten_name(text, width)) <= width);
            CHECK(is_utf8(shorten_name(text, width)));
        }
}

TEST_CASE("a long name is cut in a time that its length explains") {
    std::string name;
    for (int n = 0; n < 200'000; ++n) name += "a::";
    const auto began = std::clock();
    CHECK(shorten_name(name + "function", 20) == "…a::a::a::function");
    CHECK((std::clock() - began) / CLOCKS_PER_SEC < 5);  // minutes, if each scope were measured
}

TEST_CASE("a file's name is no longer than files have") {
    CHECK(file_name("/usr/lib/libc.so.6") == "libc.so.6");
    const auto name = file_name("/usr/" + std::string(100'000, 'x'));
    CHECK(columns_of(name) == 255);
    CHECK(name.ends_with("x…"));
}

}  // namespace shadowprof::model
