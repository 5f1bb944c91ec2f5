#include "emu/interpreter/memory_view.h"

#include <doctest/doctest.h>

#include <array>

#include "guest.h"

using namespace shadowprof;
using namespace shadowprof::emu;

namespace {

constexpr Address first_page{0x100000};

}  // namespace

TEST_CASE("pages are fetched on first use, and once") {
    TestGuest guest;
    for (unsigned n = 0; n < 8; ++n) guest.map(first_page + n * page_size);
    MemoryView view(guest);
    CHECK(guest.fetches == 0);
    view.page(first_page + 17);
    view.page(first_page + piece_size - 1);
    CHECK(guest.fetches == 1);
    view.page(first_page + 7 * page_size);
    view.page(first_page);
    CHECK(guest.fetches == 2);
    view.drop();
    view.page(first_page);
    CHECK(guest.fetches == 3);
}

TEST_CASE(
    "only pieces that are used are fetched, neighbours together, and what was written stays") {
    TestGuest guest;
    guest.map(first_page);
    MemoryView view(guest);
    view.page(first_page + 3 * piece_size);
    CHECK(guest.fetched_bytes == piece_size);
    constexpr std::byte one{1};
    view.write(first_page + 3 * piece_size + 5, {&one, 1});
    std::array<std::byte, page_size> all{};
    CHECK(view.read(first_page, all) == page_size);
    CHECK(guest.fetched_bytes == page_size);
    CHECK(guest.fetches == 3);
    CHECK(all[3 * piece_size + 5] == one);
    CHECK(view.read(first_page, all) == page_size);
    CHECK(guest.fetches == 3);
}

TEST_CASE("what lies next to a page is not made inaccessible by the way") {
    TestGuest guest;
    guest.map(first_page);
    MemoryView view(guest);
    view.page(first_page);
    guest.map(first_page + page_size);
    CHECK(view.page(first_page + page_size).readable);
}

TEST_CASE("reads and writes cross pages and end where memory ends") {
    TestGuest guest;
    guest.map(first_page);
    guest.map(first_page + page_size);
    MemoryView view(guest);
    std::array<std::byte, 100> bytes{};
    for (std::size_t n = 0; n < bytes.size(); ++n) bytes[n] = static_cast<std::byte>(n);
    CHECK(view.write(first_page + page_size - 50, bytes) == 100);
    std::array<std::byte, 100> back{};
    CHECK(view.read(first_page + page_size - 50, back) == 100);
    CHECK(back == bytes);
    CHECK(view.read(first_page + 2 * page_size - 30, back) == 30);
    CHECK(view.write(first_page + 2 * page_size - 30, bytes) == 30);
    CHECK(view.read(first_page - 1, back) == 0);
}

TEST_CASE("read-only pages are read and not written") {
    TestGuest guest;
    guest.map(first_page, false);
    MemoryView view(guest);
    std::array<std::byte, 8> bytes{};
    CHECK(view.read(first_page, bytes) == 8);
    CHECK(view.write(first_page, bytes) == 0);
}

TEST_CASE("the first and the last page of the address space") {
    TestGuest guest;
    MemoryView view(guest);
    CHECK(!view.page({0}).readable);
    CHECK(!view.page({~std::uint64_t{0}}).readable);
    std::array<std::byte, 64> bytes{};
    CHECK(view.read({~std::uint64_t{0} - 10}, bytes) == 0);
}

TEST_CASE("many pages") {
    TestGuest guest;
    constexpr std::uint64_t count = 3000, stride = 37 * page_size;
    for (std::uint64_t n = 0; n < count; ++n)
        guest.put(first_page + n * stride, std::as_bytes(std::span{&n, 1}));
    MemoryView view(guest);
    for (int round = 0; round < 2; ++round) {
        bool all = true;
        for (std::uint64_t n = 0; n < count; ++n) {
            std::uint64_t value = ~n;
            view.read(first_page + n * stride, std::as_writable_bytes(std::span{&value, 1}));
            all = all && value == n;
        }
        CHECK(all);
        view.drop();
    }
}

TEST_CASE("writes to compiled code are noticed, and only those") {
    TestGuest guest;
    guest.map(first_page);
    MemoryView view(guest);
    view.mark_code({first_page + 100, first_page + 130});
    constexpr std::byte one{1};
    view.write(first_page + 200, {&one, 1});
    CHECK(!view.code_changed());
    view.write(first_page + 129, {&one, 1});
    CHECK(view.code_changed());
    CHECK(view.take_changed_code() == std::vector<Address>{first_page});
    CHECK(!view.code_changed());
    CHECK(view.take_changed_code().empty());
}

TEST_CASE("a copy's byte is found in the guest again") {
    TestGuest guest;
    guest.map(first_page);
    MemoryView view(guest);
    const auto* copy = view.page(first_page).data;
    CHECK(view.guest_address_of(copy + 5) == first_page + 5);
    constexpr std::byte elsewhere{};
    CHECK(!view.guest_address_of(&elsewhere));
}
