#include "trace/block.h"

#include <doctest/doctest.h>

#include <set>
#include <thread>
#include <vector>

#include "assembly.h"

using namespace shadowprof;
using namespace shadowprof::trace;

namespace {

std::string repeated(const std::string& code, std::size_t times) {
    std::string result;
    for (std::size_t i = 0; i < times; ++i) result += code + " ";
    result.pop_back();
    return result;
}

Block block_at(Address start, const std::string& code) {
    TestCode source(start, bytes_of(code));
    Block block;
    block.start = start;
    block.instructions = decode_block(source, start);
    block.exit = exit_of(block.instructions);
    return block;
}

}  // namespace

TEST_CASE("a block ends with the first instruction that is not followed by the next one") {
    // mov eax, ecx; then the end; then a nop that does not belong to it.
    const std::pair<const char*, BlockExit> ends[] = {
        {"74 00", BlockExit::conditional},   {"eb 00", BlockExit::jump},
        {"ff e0", BlockExit::indirect_jump}, {"e8 00 00 00 00", BlockExit::call},
        {"ff d0", BlockExit::indirect_call}, {"c3", BlockExit::return_},
        {"0f 05", BlockExit::system_call},   {"0f 0b", BlockExit::trap},
        {"e2 fe", BlockExit::conditional},   {"cc", BlockExit::trap}};
    for (const auto& [code, exit] : ends) {
        const auto block = block_of("89 c8 " + std::string(code) + " 90");
        CHECK(block.size() == 2);
        CHECK(exit_of(block) == exit);
    }
}

TEST_CASE("a block ends after 64 instructions") {
    CHECK(block_of(repeated("90", 64)).size() == 64);
    const auto block = block_of(repeated("90", 65));
    CHECK(block.size() == 64);
    CHECK(exit_of(block) == BlockExit::length);
    // A branch in the last place is what ends it.
    CHECK(exit_of(block_of(repeated("90", 63) + " c3")) == BlockExit::return_);
    CHECK(exit_of(block_of(repeated("90", 64) + " c3")) == BlockExit::length);
}

TEST_CASE("a string instruction does not end a block") {
    CHECK(block_of("f3 a4 c3").size() == 2);
}

TEST_CASE("what does not decode or cannot be read ends a block") {
    CHECK(block_of("06 90 c3").empty());
    CHECK(block_of("48").empty());
    const auto bad = block_of("90 90 06");
    CHECK(bad.size() == 2);
    CHECK(exit_of(bad) == BlockExit::cut);
    const auto unreadable = block_of("90 89 c8 e8 00");
    CHECK(unreadable.size() == 2);
    CHECK(exit_of(unreadable) == BlockExit::cut);
    TestCode code(Address{0x1000}, bytes_of("90 c3"));
    CHECK(decode_block(code, Address{0x2000}).empty());
}

TEST_CASE("code is read as far as a block needs it") {
    TestCode shortest(Address{0x1000}, bytes_of("c3 " + repeated("90", 4000)));
    CHECK(decode_block(shortest, Address{0x1000}).size() == 1);
    CHECK(shortest.reads == 1);
    // The longest block there is: 64 times 15 bytes, a nop with all the prefixes that fit.
    const auto longest_nop = repeated("66", 14) + " 90";
    TestCode longest(Address{0x1000}, bytes_of(repeated(longest_nop, 65)));
    const auto block = decode_block(longest, Address{0x1000});
    CHECK(block.size() == 64);
    CHECK(block.back().end() == Address{0x1000 + 64 * 15});
    // The last byte of readable memory is the last byte of the block.
    TestCode tight(Address{0x1000}, bytes_of(repeated(longest_nop, 64)));
    CHECK(decode_block(tight, Address{0x1000}).size() == 64);
}

TEST_CASE("places in a block") {
    auto block = block_at(Address{0x7f0000001000}, "89 c8 83 c0 01 c3");
    block.place = {.module = ModuleId{3}, .offset = 0x1000, .content = 0};
    CHECK(block.end() == Address{0x7f0000001006});
    CHECK(block.size() == 6);
    CHECK(block.place_of_last() == Location{ModuleId{3}, 0x1005, 0});
    CHECK(block.place_of(block.instructions[1]) == Location{ModuleId{3}, 0x1002, 0});
}

TEST_CASE("the table numbers blocks and keeps them where they are") {
    BlockTable table;
    CHECK(table.size() == 0);
    const auto& first = table.publish(block_at(Address{0x1000}, "c3"));
    CHECK(first.id == BlockId{0});
    constexpr std::uint32_t more_than_two_pages = 9000;
    for (std::uint32_t i = 1; i < more_than_two_pages; ++i) {
        Block block;
        block.start = Address{0x1000 + i};
        CHECK(table.publish(std::move(block)).id == BlockId{i});
    }
    CHECK(table.size() == more_than_two_pages);
    CHECK(&table.at(BlockId{0}) == &first);
    CHECK(first.instructions.size() == 1);
    for (std::uint32_t i = 0; i < more_than_two_pages; ++i)
        CHECK(table.at(BlockId{i}).start == Address{0x1000 + i});
}

TEST_CASE("blocks are read while others are published") {
    BlockTable table;
    constexpr std::uint32_t blocks = 50'000;
    std::atomic<std::uint32_t> wrong = 0;
    std::thread reader([&] {
        for (std::uint32_t seen = 0; seen < blocks; seen = table.size())
            if (seen && table.at(BlockId{seen - 1}).start != Address{seen - 1}) ++wrong;
    });
    for (std::uint32_t i = 0; i < blocks; ++i) {
        Block block;
        block.start = Address{i};
        table.publish(std::move(block));
    }
    reader.join();
    CHECK(wrong == 0);
}

TEST_CASE("several threads publish blocks at once, and each stays what it was") {
    BlockTable table;
    constexpr std::uint32_t publishers = 4, blocks = 20'000;
    std::atomic<std::uint32_t> wrong = 0;
    std::vector<std::thread> threads;
    for (std::uint32_t publisher = 0; publisher < publishers; ++publisher)
        threads.emplace_back([&, publisher] {
            for (std::uint32_t i = 0; i < blocks; ++i) {
                Block block;
                block.start = Address{publisher * blocks + i};
                const auto id = table.publish(std::move(block)).id;
                if (table.at(id).start != Address{publisher * blocks + i}) ++wrong;
            }
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    REQUIRE(table.size() == publishers * blocks);
    std::set<Address> starts;
    for (std::uint32_t i = 0; i < table.size(); ++i) starts.insert(table.at(BlockId{i}).start);
    CHECK(starts.size() == table.size());
}
