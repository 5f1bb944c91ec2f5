// By what a replica's speed is measured: what is chosen, and the code that counts.
#include "emu/translator/native_rate/landmark.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "../hexadecimal.h"
#include "arena.h"
#include "native.h"
#include "translated.h"

using namespace shadowprof;
using namespace shadowprof::differential;
using emu::translator::choose_landmark;

namespace {

constexpr Address start = NativeCode::begin;

// Blocks in this process. Segments of them are made by hand.
struct Program {
    explicit Program(bool may_change = false)
        : code(::getpid(), blocks, modules, trace::CapturePlan{}) {
        native.look_writable(may_change);
        code.maps();
        native.look_writable(false);
    }

    trace::SegmentId segment(std::initializer_list<std::string> of_blocks) {
        std::vector<trace::BlockId> ids;
        for (const auto& hexadecimal : of_blocks) {
            native.place(next, bytes_of(hexadecimal));
            code.forget_pages();
            ids.push_back(code.block_at(next)->id);
            next = next + 0x100;
        }
        return segments.publish(ids);
    }

    NativeCode native;
    trace::BlockTable blocks;
    trace::ModuleTable modules;
    trace::SegmentTable segments;
    emu::GuestCode code;
    Address next = start;
};

// Each ends with a jump to itself.
const std::string movable = "90  48 05 01 00 00 00  eb fe";  // nop; add rax, 1
const std::string short_ones = "90  83 c0 01  90  eb fe";
const std::string relative = "48 8b 05 00 10 00 00  90  eb fe";  // mov rax, [rip + 0x1000]

const std::string past_prefix = "48 05 01 00 00 00  90  eb fe";

constexpr double millisecond = 1e6;

std::vector<trace::SegmentId> repeated(const std::vector<trace::SegmentId>& some,
                                       std::size_t times) {
    std::vector<trace::SegmentId> all;
    while (times-- > 0) all.insert(all.end(), some.begin(), some.end());
    return all;
}

}  // namespace

TEST_CASE("a landmark is an instruction that a jump can take the place of, in its block's middle") {
    Program program;
    const auto segment = program.segment({short_ones, relative, movable});
    const auto chosen =
        choose_landmark(repeated({segment}, 1000), millisecond, program.segments, program.code);
    REQUIRE(chosen);
    CHECK(chosen->instruction.address == start + 0x201);
    CHECK(chosen->instructions == doctest::Approx(4 + 3 + 3));
    CHECK(chosen->nanoseconds == doctest::Approx(1000));

    const auto without = program.segment({short_ones, relative});
    CHECK_FALSE(
        choose_landmark(repeated({without}, 1000), millisecond, program.segments, program.code));
}

TEST_CASE(
    "of several landmarks the one with regular visits is chosen, and none that is passed all the "
    "time") {
    Program program;
    const auto filling = program.segment({short_ones}), regular = program.segment({movable}),
               other = program.segment({movable}), hot = program.segment({movable});
    std::vector<trace::SegmentId> executed;
    for (int round = 0; round < 200; ++round) {
        for (int i = 0; i < 100; ++i) {
            executed.push_back(hot);
            executed.push_back(filling);
        }
        executed.push_back(regular);
        // As often, but in two places.
        if (round % 100 == 0) executed.insert(executed.end(), 100, other);
    }
    auto chosen = choose_landmark(executed, millisecond, program.segments, program.code);
    REQUIRE(chosen);
    CHECK(chosen->instruction.address == start + 0x101);
    CHECK(chosen->instructions == doctest::Approx(100 * (3 + 4) + 3 + 3));

    // Too seldom to tell anything.
    executed.resize(10 * 201);
    CHECK_FALSE(choose_landmark(executed, millisecond / 20, program.segments, program.code));
}

TEST_CASE("visits are counted through whatever block the instruction is in") {
    Program program;
    const auto whole = program.segment({movable});
    std::vector<trace::BlockId> inner{program.code.block_at(start + 1)->id};
    const auto from_middle = program.segments.publish(inner);
    const auto chosen = choose_landmark(repeated({whole, from_middle}, 500), millisecond,
                                        program.segments, program.code);
    REQUIRE(chosen);
    CHECK(chosen->instruction.address == start + 1);
    CHECK(chosen->instructions == doctest::Approx((3 + 2) / 2.0));
}

TEST_CASE("an instruction that is entered in its middle, or could be, is no landmark") {
    Program program;
    const auto locked = program.segment({"90  f0 48 83 07 01  eb fe"});  // lock add qword [rdi], 1
    CHECK_FALSE(
        choose_landmark(repeated({locked}, 1000), millisecond, program.segments, program.code));
    const auto segment = program.segment({movable});
    CHECK(choose_landmark(repeated({segment}, 1000), millisecond, program.segments, program.code));
    REQUIRE(program.code.block_at(start + 0x103));
    CHECK_FALSE(
        choose_landmark(repeated({segment}, 1000), millisecond, program.segments, program.code));
    // Of one with a lock only what comes past the prefix has been seen.
    program.native.place(program.next, bytes_of("f0 " + past_prefix));
    program.code.forget_pages();
    const std::vector<trace::BlockId> unlocked{program.code.block_at(program.next + 1)->id};
    CHECK_FALSE(choose_landmark(repeated({program.segments.publish(unlocked)}, 1000), millisecond,
                                program.segments, program.code));
}

TEST_CASE("code that may change has no landmarks") {
    Program program{true};
    const auto segment = program.segment({movable});
    CHECK_FALSE(
        choose_landmark(repeated({segment}, 1000), millisecond, program.segments, program.code));
}

TEST_CASE("counting code leaves everything as it is, and traps when nothing is left") {
    NativeCode native;
    Arena memory;
    trace::BlockTable blocks;
    trace::ModuleTable modules;
    emu::GuestCode code{::getpid(), blocks, modules, trace::CapturePlan{}};
    code.maps();
    TranslatedCode cache{code};
    //     mov ecx, 10
    //  1: adc rax, 0x11          the carry that dec leaves alone
    //     dec ecx
    //     jnz 1b
    //     adc rax, 0x100
    const std::string before = "b9 0a 00 00 00 ", behind = " ff c9  75 f6  48 15 00 01 00 00";
    native.place(start, bytes_of(before + "48 15 11 00 00 00" + behind));
    const auto counted = code.block_at(start + 5)->instructions.front();
    emu::GuestState begin;
    begin.general[decoder::rsp] = memory.begin.value + 0x1000;
    begin.rip = start;
    auto without = begin;
    REQUIRE(native.run(without).signal == 0);

    auto* const words = static_cast<std::uint64_t*>(mmap(
        nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0));
    REQUIRE(words != MAP_FAILED);
    const auto place = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(words));
    const auto counting = cache.translator().count_down(counted, place, place + 8);
    REQUIRE(counting);
    CHECK(cache.translator().count_down(counted, place, place + 8) == counting);
    const auto distance = static_cast<std::uint32_t>(*counting - (start + 10));
    std::string jump = "e9";
    for (unsigned n = 0; n < 4; ++n) {
        constexpr auto digits = "0123456789abcdef";
        const auto byte = distance >> (8 * n) & 0xff;
        jump += {' ', digits[byte >> 4], digits[byte & 15]};
    }
    native.place(start, bytes_of(before + jump + " 90" + behind));

    words[0] = 11;
    auto with = begin;
    CHECK(native.run(with).signal == 0);
    CHECK(words[0] == 1);
    CHECK(with.general == without.general);
    CHECK(with.rflags == without.rflags);

    words[0] = 4;
    with = begin;
    CHECK(native.run(with).signal == SIGTRAP);
    CHECK(words[0] == 0);
    CHECK(cache.contains(with.rip));
    CHECK(with.general[decoder::rcx] == 7);
    CHECK(with.general[decoder::rax] == begin.general[decoder::rax] + 3 * 0x11);
    munmap(words, 4096);
}
