#include "base/sections.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>

namespace shadowprof {

namespace {

std::string written(const SectionWriter& out) {
    std::string text;
    for (const auto part : out.parts()) text += part;
    return text;
}

TEST_CASE("sections are read as they were written") {
    const std::vector<std::uint16_t> numbers{1, 2, 3};
    SectionWriter out;
    out.add(std::span{numbers});
    out.keep(std::vector<std::uint64_t>{});
    out.keep(std::vector<char>(33, 'x'));
    out.keep_one(std::uint64_t{7});
    const auto text = written(out);
    CHECK(text.size() == out.size());
    SectionReader in{text};
    CHECK(in.checksum() == out.checksum());
    CHECK(std::ranges::equal(in.take<std::uint16_t>(), numbers));
    CHECK(in.take<std::uint64_t>().empty());
    CHECK(in.take<char>().size() == 33);
    CHECK(in.take_one<std::uint64_t>() == 7);
    CHECK(in.is_sound());
    CHECK(in.take<char>().empty());
    CHECK(!in.is_sound());
}

TEST_CASE("each bit counts for the checksum") {
    std::string text(100, 'a');
    const auto sum = checksum_of(text);
    for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
        text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
        CHECK(checksum_of(text) != sum);
        text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
    }
    CHECK(checksum_of(text) == sum);
    CHECK(checksum_of(text + '\0') != sum);
}

TEST_CASE("what is cut off, or of another type, is not sound") {
    SectionWriter out;
    out.keep(std::vector<char>(40, 'x'));
    const auto text = written(out);
    for (std::size_t size = 0; size < text.size(); ++size) {
        SectionReader in{std::string_view{text}.substr(0, size)};
        CHECK(in.take<char>().empty());
        CHECK(!in.is_sound());
    }
    SectionReader in{text};
    CHECK(in.take<std::array<char, 3>>().empty());
    CHECK(!in.is_sound());
}

}  // namespace

}  // namespace shadowprof
