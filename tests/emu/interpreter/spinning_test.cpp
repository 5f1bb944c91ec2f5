// A thread that waits in a loop in vain is distinguished from one that works in a loop.
#include "emu/interpreter/spinning.h"

#include <doctest/doctest.h>

#include "guest.h"

namespace shadowprof::emu {

namespace {

constexpr Address code{0x10000}, data{0x20000};

bool spins(const std::string& loop, std::uint32_t word) {
    TestGuest guest;
    guest.map(code, false);
    guest.map(data);
    guest.put(code, loop);
    guest.put(data, std::as_bytes(std::span{&word, 1}));
    GuestState state;
    state.rip = code;
    state.general[decoder::rdi] = data.value;
    state.general[decoder::rcx] = 1000;
    return spins_for_ever(state, guest, guest);
}

}  // namespace

TEST_CASE("waiting until a word is no longer zero") {
    // pause; mov (%rdi), %eax; test %eax, %eax; je .-8
    const std::string loop = "f3 90 8b 07 85 c0 74 f8";
    CHECK(spins(loop, 0));
    CHECK_FALSE(spins(loop, 1));
}

TEST_CASE("test and set writes what is there already") {
    // mov $1, %eax; xchg %eax, (%rdi); test %eax, %eax; jne .-11
    const std::string loop = "b8 01 00 00 00 87 07 85 c0 75 f5";
    CHECK(spins(loop, 1));
    CHECK_FALSE(spins(loop, 0));
}

TEST_CASE("loops that get on") {
    CHECK_FALSE(spins("ff c9 75 fc", 0));                    // dec %ecx; jne
    CHECK_FALSE(spins("ff 07 eb fc", 0));                    // incl (%rdi); jmp
    CHECK_FALSE(spins("66 0f 76 c9 66 0f d4 c1 eb f6", 0));  // all ones; paddq %xmm1, %xmm0; jmp
    CHECK_FALSE(spins("0f 31 eb fc", 0));                    // rdtsc; jmp
    CHECK_FALSE(spins("0f 05 eb fc", 0));                    // syscall; jmp
}

}  // namespace shadowprof::emu
