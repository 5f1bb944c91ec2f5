#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "addon/address_names.h"
#include "addon/hosting.h"
#include "addon/messages.h"

namespace shadowprof::addon {

namespace {

// One sample of 10 events, of which 7 and 3 have an entry.
std::string message(std::uint64_t total = 10, std::uint64_t first = 7, std::uint64_t least = 1) {
    MessageWriter out;
    out.put(std::uint64_t{1}).put(total).put(Wide{total} * total).put(std::uint64_t{0});
    out.put(std::uint32_t{2});
    for (const auto count : {first, std::uint64_t{3}}) {
        out.put(std::uint32_t{0}).put(std::uint32_t{0}).put_text("key\n");
        out.put(std::uint64_t{1}).put(count).put(Wide{count} * count).put(Wide{count} * total);
        out.put(std::uint64_t{2}).put(std::uint64_t{5}).put(least).put(std::uint64_t{4});
    }
    out.put(std::uint32_t{1}).put_text("a line");
    return out.bytes();
}

int a_variable_of_this_test = 0;

}  // namespace

TEST_CASE("what a module has found is read, and its text made printable") {
    const auto found = read_found(message());
    CHECK(found.totals.total == 10);
    REQUIRE(found.entries.size() == 2);
    CHECK(found.entries[0].statistics.count == 7);
    CHECK(found.entries[0].values.mean() == 2.5);
    CHECK(found.entries[0].key.find('\n') == std::string::npos);
    CHECK(found.said == std::vector<std::string>{"a line"});
}

TEST_CASE("what contradicts itself or is cut off is refused") {
    const auto whole = message();
    for (std::size_t size = 0; size < whole.size(); ++size)
        CHECK_THROWS_AS(read_found(whole.substr(0, size)), BadMessage);
    CHECK_THROWS_AS(read_found(message(11)), BadMessage);        // counts do not add up
    CHECK_THROWS_AS(read_found(message(10, 8)), BadMessage);     // … to too much
    CHECK_THROWS_AS(read_found(message(10, 7, 5)), BadMessage);  // least is more than most
}

TEST_CASE("values are added up, and stay within 63 bits") {
    Measured values;
    values.add(4, 3);
    values.add(10);
    CHECK(values == Measured{4, 22, 4, 10});
    values.add(~std::uint64_t{0}, 1000);
    CHECK(values.sum == Measured::most_of_a_sum);
    CHECK(values.most == Measured::most_of_a_sum);
}

TEST_CASE("addresses are named by variables, heaps and stacks") {
    AddressNames names;
    names.target_is(::getpid());
    const auto variable = reinterpret_cast<std::uintptr_t>(&a_variable_of_this_test);
    CHECK(names.name(variable).find("a_variable_of_this_test") != std::string::npos);
    CHECK(names.name(variable + 1).ends_with("+0x1"));
    CHECK(names.name(reinterpret_cast<std::uintptr_t>(&names)).starts_with("[stack]+"));
    CHECK(names.name(8) == "0x8");

    // A mapping of a device has the device's name, and reading that has no end.
    const int zeroes = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
    auto* const mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, zeroes, 0);
    REQUIRE(mapped != MAP_FAILED);
    CHECK(names.name(reinterpret_cast<std::uintptr_t>(mapped)) ==
          fmt::format("{:#x}", reinterpret_cast<std::uintptr_t>(mapped)));
    ::munmap(mapped, 4096);
    ::close(zeroes);
}

}  // namespace shadowprof::addon
