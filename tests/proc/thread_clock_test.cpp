#include "proc/thread_clock.h"

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "proc/process_info.h"
#include "support/tracing.h"

using namespace shadowprof;
using namespace shadowprof::proc;

namespace {

constexpr std::uint64_t millisecond = 1'000'000;
constexpr std::uint64_t marker = 0x1122334455667788;

[[gnu::noinline]] void compute(std::chrono::milliseconds time) {
    volatile std::uint64_t on_stack[4] = {marker, 0, 0, 0};
    const auto until = *thread_cpu_time(getpid(), gettid()) +
                       static_cast<std::uint64_t>(time.count()) * millisecond;
    while (*thread_cpu_time(getpid(), gettid()) < until)
        for (int n = 0; n < 100'000; ++n) on_stack[1] = on_stack[1] + on_stack[0];
}

bool holds_marker(std::span<const std::byte> stack) {
    for (std::size_t n = 0; n + sizeof marker <= stack.size(); n += sizeof marker)
        if (std::memcmp(&stack[n], &marker, sizeof marker) == 0) return true;
    return false;
}

}  // namespace

TEST_CASE("a thread that runs is looked at, with its registers and its stack") {
    // The first look may come before compute() has a marker of its own.
    const volatile std::uint64_t there = marker;
    ThreadClock clock{{millisecond, 8192, true}};
    if (!clock.watch(gettid())) {
        MESSAGE("the kernel refuses its clock");
        return;
    }
    CHECK(clock.watches(gettid()));
    compute(std::chrono::milliseconds{12});
    std::size_t looks = 0, in_user_code = 0, with_marker = 0;
    clock.read([&](const ThreadClock::Look& look) {
        ++looks;
        CHECK(look.tid == gettid());
        CHECK(look.has_registers);
        const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
        const auto rsp = look.general[4];
        CHECK((rsp < here + 65536 && rsp > here - 65536));
        with_marker += holds_marker(look.stack);
        if (look.in_kernel) return;
        ++in_user_code;
        CHECK(look.at == look.user_at);
    });
    CHECK(looks >= 8);
    CHECK(in_user_code >= 1);
    CHECK(there == marker);
    CHECK(with_marker == looks);
    // What was read does not come again.
    std::size_t again = 0;
    clock.read([&](const auto&) { ++again; });
    CHECK(again <= 1);
}

TEST_CASE("looks for which there is no room are counted") {
    ThreadClock clock{{millisecond / 4, 8192, false}};
    if (!clock.watch(gettid())) return;
    compute(std::chrono::milliseconds{40});
    std::size_t looks = 0;
    clock.read([&](const auto&) { ++looks; });
    // The kernel says how many there were when there is room again.
    compute(std::chrono::milliseconds{2});
    clock.read([&](const auto&) { ++looks; });
    CHECK(looks < 100);
    CHECK(clock.lost() > 0);
}

TEST_CASE("who cannot be watched is not") {
    ThreadClock clock{{millisecond, 0, false}};
    CHECK(!clock.watch(0x7ffffff0));
    std::size_t looks = 0;
    clock.read([&](const auto&) { ++looks; });
    CHECK(looks == 0);
}

TEST_CASE("the call that a thread sleeps in") {
    ptrace::testing::Target sleeping{{"sleep-long"}}, spinning{{"spin"}};
    REQUIRE(sleeping.line() == "ready");
    REQUIRE(spinning.line() == "ready");
    REQUIRE(sleeping.sleeps_in(SYS_epoll_wait));
    const auto call = sleeps_in_call(sleeping.pid(), sleeping.pid());
    REQUIRE(call);
    CHECK(call->number == SYS_epoll_wait);
    CHECK(call->arguments[2] >= 1);  // how many events it takes
    CHECK(call->stack.value > 0);
    CHECK(goes_on_at(sleeping.pid(), sleeping.pid()) == call->at);
    CHECK(!sleeps_in_call(spinning.pid(), spinning.pid()));
    CHECK(!sleeps_in_call(0x7ffffff0, 0x7ffffff0));
}
