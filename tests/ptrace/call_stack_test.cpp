#include "ptrace/call_stack.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>

using namespace shadowprof;
using namespace shadowprof::ptrace;

namespace {

struct Taken {
    StackSnapshot snapshot;
    std::vector<Address> returns_to;  // innermost first
};

constexpr std::size_t copied = 8192;

Address address_of(const void* at) {
    return {reinterpret_cast<std::uint64_t>(at)};
}

// Of this thread, which goes on and uses its stack for something else.
[[gnu::noinline]] void take(Taken& taken) {
    ucontext_t here;
    getcontext(&here);
    auto& raw = taken.snapshot.registers.raw;
    const auto* const registers = here.uc_mcontext.gregs;
    const auto value = [&](int which) { return static_cast<unsigned long long>(registers[which]); };
    raw.rip = value(REG_RIP);
    raw.rsp = value(REG_RSP);
    raw.rbp = value(REG_RBP);
    raw.rbx = value(REG_RBX);
    raw.r12 = value(REG_R12);
    raw.r13 = value(REG_R13);
    raw.r14 = value(REG_R14);
    raw.r15 = value(REG_R15);
    taken.snapshot.pid = getpid();
    taken.snapshot.bytes.resize(copied);
    std::memcpy(taken.snapshot.bytes.data(), reinterpret_cast<const void*>(raw.rsp),
                taken.snapshot.bytes.size());
    taken.returns_to.push_back(address_of(__builtin_return_address(0)));
}

// Its frame cannot be left without the frame pointer, for its size depends on the run.
[[gnu::noinline]] void middle(Taken& taken, std::size_t size) {
    auto* const room = static_cast<char*>(__builtin_alloca(size));
    std::memset(room, 0, size);
    take(taken);
    asm volatile("" : : "r"(room) : "memory");
    taken.returns_to.push_back(address_of(__builtin_return_address(0)));
}

[[gnu::noinline]] void outer(Taken& taken, std::size_t size) {
    middle(taken, size);
    asm volatile("" : : : "memory");
    taken.returns_to.push_back(address_of(__builtin_return_address(0)));
}

// Has something to destroy if an exception passes, so its unwind information names a routine for
// that.
[[gnu::noinline]] void careful(Taken& taken, std::size_t size) {
    const std::string kept(size, 'x');
    outer(taken, size);
    asm volatile("" : : "r"(kept.data()) : "memory");
    taken.returns_to.push_back(address_of(__builtin_return_address(0)));
}

[[gnu::noinline]] void use_the_stack_for_something_else() {
    volatile char room[4096];
    for (auto& each : room) each = 0x55;
}

Taken taken_on_the_way(void (*first)(Taken&, std::size_t) = outer) {
    Taken taken;
    // As much of the stack is copied as there is at least.
    const char room[2 * copied]{};
    asm volatile("" : : "r"(room) : "memory");
    first(taken, 100);
    use_the_stack_for_something_else();
    return taken;
}

std::shared_ptr<const proc::Maps> own_maps() {
    auto maps = proc::Maps::of(getpid());
    REQUIRE(maps);
    return std::make_shared<const proc::Maps>(std::move(*maps));
}

void check_unwinds_to(const Taken& taken, const std::vector<Address>& frames) {
    REQUIRE(frames.size() > taken.returns_to.size());
    CHECK(frames.front() == taken.snapshot.registers.rip());
    CHECK(std::equal(taken.returns_to.begin(), taken.returns_to.end(), frames.begin() + 1));
}

// Calls take(taken). Its unwind instructions jump backwards for ever: an expression (0x0f) of three
// bytes that goes on three bytes before its end (0x2f).
extern "C" void call_from_a_loop(Taken& taken, void (*call)(Taken&));
asm(R"(
.text
.globl call_from_a_loop
.type call_from_a_loop, @function
call_from_a_loop:
.cfi_startproc
.cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff
push %rbx
call *%rsi
pop %rbx
ret
.cfi_endproc
.size call_from_a_loop, . - call_from_a_loop
)");

StackWithSignals in_handler;

void nested_handler(int) {
    Taken taken;
    take(taken);
    in_handler = unwind_with_signals(taken.snapshot, own_maps());
}

void handler(int) {
    std::raise(SIGUSR2);
}

}  // namespace

TEST_CASE("signal handlers are found on a stack that is unwound to its end") {
    const char room[2 * copied]{};
    asm volatile("" : : "r"(room) : "memory");
    std::signal(SIGUSR1, handler);
    std::signal(SIGUSR2, nested_handler);
    std::raise(SIGUSR1);
    REQUIRE(in_handler.signals);
    CHECK(in_handler.signals->depth() == 2);
    nested_handler(0);
    REQUIRE(in_handler.signals);
    CHECK(in_handler.signals->depth() == 0);
    Taken taken;
    take(taken);
    CHECK(!unwind_with_signals(taken.snapshot, own_maps(), 2).signals);
}

TEST_CASE("a copy of a stack is unwound when the stack is no longer like that") {
    const auto taken = taken_on_the_way();
    check_unwinds_to(taken, unwind(taken.snapshot, own_maps()));
}

TEST_CASE("a stack is unwound through functions that an exception would clean up") {
    const auto taken = taken_on_the_way(careful);
    check_unwinds_to(taken, unwind(taken.snapshot, own_maps()));
}

TEST_CASE("of a sleeper's stack, where the frame pointer is not known") {
    auto taken = taken_on_the_way();
    auto& raw = taken.snapshot.registers.raw;
    raw.rbp = raw.rbx = raw.r12 = raw.r13 = raw.r14 = raw.r15 = 0;
    taken.snapshot.is_of_sleeper = true;
    check_unwinds_to(taken, unwind(taken.snapshot, own_maps()));
}

TEST_CASE("of a stack that is deeper than its copy there is what was copied") {
    auto taken = taken_on_the_way();
    taken.snapshot.bytes.resize(64);
    const auto frames = unwind(taken.snapshot, own_maps());
    CHECK(!frames.empty());
    CHECK(frames.front() == taken.snapshot.registers.rip());
    CHECK(frames.size() <= taken.returns_to.size() + 1);
}

TEST_CASE("unwind instructions that have no end") {
    const char room[2 * copied]{};
    asm volatile("" : : "r"(room) : "memory");
    Taken taken;
    call_from_a_loop(taken, take);
    CHECK(unwind_with_signals(taken.snapshot, own_maps()).frames.size() <= 2 + 128);
    CHECK(unwind(taken.snapshot, own_maps()).front() == taken.snapshot.registers.rip());
}

TEST_CASE("of a process that is gone there is as much as of one that lives") {
    auto taken = taken_on_the_way(careful);
    const auto maps = own_maps();
    const auto gone = fork();
    if (gone == 0) _exit(0);
    REQUIRE(waitpid(gone, nullptr, 0) == gone);
    taken.snapshot.pid = gone;
    check_unwinds_to(taken, unwind_with_signals(taken.snapshot, maps).frames);
}
