#include "emu/common/known_code.h"

#include <doctest/doctest.h>

using namespace shadowprof;
using emu::KnownPlace;
using emu::read_places;

TEST_CASE("Places of code come back as they were written") {
    const std::vector<KnownPlace> places{{0x401000, false},
                                         {0, true},
                                         {0x7fff'ffff'ffff, false},
                                         {0x401010, true},
                                         {0x401010, false}};
    const auto text = emu::written(places, "0a1b");
    CHECK(read_places(text, "0a1b") == places);
    CHECK(emu::written(read_places(text, "0a1b"), "0a1b") == text);
    CHECK(read_places(text, "0a1c").empty());
}

TEST_CASE("Of a file of places that was damaged nothing is believed") {
    const auto text = emu::written({{0x1000, false}, {0x1010, true}, {0x1234, false}}, "0a1b");
    for (std::size_t length = 0; length < text.size(); ++length)
        CHECK(read_places(text.substr(0, length), "0a1b").empty());
    for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
        auto damaged = text;
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
        CHECK(read_places(damaged, "0a1b").empty());
    }
}

TEST_CASE("A file of places that was forged has bounds") {
    CHECK(read_places(emu::written({{std::uint64_t{1} << 47, false}}, "0a1b"), "0a1b").empty());
    const std::vector<KnownPlace> many(300'000);
    CHECK(read_places(emu::written(many, "0a1b"), "0a1b").empty());
}
