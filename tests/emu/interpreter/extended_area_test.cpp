#include "emu/interpreter/extended_area.h"

#include <doctest/doctest.h>

#include "emu/interpreter/guest_state.h"
#include "emu/interpreter/host_code.h"

using namespace shadowprof::emu;

TEST_CASE("components begin to be in use as far as an instruction's vectors reach") {
    constexpr ExtendedArea::Vector value{1, 2, 0, 0, 0, 0, 0, 0};
    struct Case {
        unsigned number;
        std::size_t width;
        std::uint64_t in_use;  // SSE 2, AVX 4, upper halves of zmm0–15 40, zmm16–31 80
    };
    for (const auto& [number, width, in_use] :
         {Case{1, 16, 0x02}, Case{1, 32, 0x06}, Case{1, 64, 0x46}, Case{17, 16, 0x80}}) {
        GuestState state;
        ExtendedArea area(state.extended.data());
        area.set_vector(number, value, width);
        CHECK(area.present() == (in_use & switched_components()));
    }
}

TEST_CASE("what is in use is cleared beyond an instruction's vectors") {
    GuestState state;
    ExtendedArea area(state.extended.data());
    area.set_vector(3, {1, 2, 3, 4, 5, 6, 7, 8});
    const auto in_use = area.present();
    area.set_vector(3, {9, 9, 0, 0, 0, 0, 0, 0}, 16);
    CHECK(area.vector(3) == ExtendedArea::Vector{9, 9, 0, 0, 0, 0, 0, 0});
    CHECK(area.present() == in_use);
}
