// What can be seen of a stopped thread: its registers and its stack.
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "proc/maps.h"
#include "proc/process_info.h"
#include "ptrace/call_stack.h"
#include "support/tracing.h"

using namespace shadowprof;
using namespace shadowprof::proc;
using namespace shadowprof::ptrace;
using namespace shadowprof::ptrace::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t known = 0x0123456789abcdef;

// Stops the target's first thread and looks at it.
void look_at(const Target& target, const std::function<void(Tracer&, Thread&)>& look) {
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        auto* thread = tracer->thread(target.pid());
        REQUIRE(thread->interrupt());
        const auto event = tracer->wait(Clock::now() + 5s);
        REQUIRE(event);
        look(*tracer, *thread);
    });
}

// Once it has said "ready" it makes no more system calls.
void reach_endless_loop(const Target& target) {
    const auto time = [&] { return thread_cpu_time(target.pid(), target.pid()).value_or(0); };
    const auto now = time();
    CHECK(becomes_true([&] { return time() > now + 20'000'000; }));
}

}  // namespace

TEST_CASE("registers and extended state are read, and written back unharmed") {
    Target target{{"stack", "3"}};
    REQUIRE(target.line() == "ready");
    reach_endless_loop(target);
    look_at(target, [&](Tracer& tracer, Thread& thread) {
        auto registers = thread.registers();
        REQUIRE(registers);
        CHECK(registers->is_64bit());
        CHECK(!registers->in_system_call());
        CHECK(registers->general(12) == 0x1122334455667788);
        CHECK(registers->general(0) == known);
        CHECK(registers->general(4) == registers->rsp().value);

        auto state = thread.extended_state();
        REQUIRE(state);
        CHECK(state->area().size() >= 576);
        CHECK((state->present() & 2) != 0);
        CHECK(state->mxcsr() == 0x1f80);
        CHECK(state->vector(8) == std::array<std::uint64_t, 8>{known});
        if (__builtin_cpu_supports("avx"))
            CHECK(state->vector(9) == std::array<std::uint64_t, 8>{known, known, known, known});
        CHECK(state->vector(31) == std::array<std::uint64_t, 8>{});
        CHECK(state->mask(7) == 0);

        registers->set_general(13, 99);
        CHECK(thread.set_registers(*registers));
        CHECK(thread.set_extended_state(*state));
        CHECK(thread.registers()->general(13) == 99);
        CHECK(std::ranges::equal(thread.extended_state()->area(), state->area()));
        CHECK(tracer.alive());
    });
}

TEST_CASE("a stack is unwound by any thread, and after the program went on") {
    constexpr int depth = 20;
    Target target{{"stack", std::to_string(depth)}};
    REQUIRE(target.line() == "ready");
    reach_endless_loop(target);
    StackSnapshot snapshot;
    look_at(target, [&](Tracer& tracer, Thread& thread) {
        snapshot = snapshot_stack(tracer.pid(), *thread.registers());
    });
    CHECK(snapshot.bytes.size() > 1000);
    auto found = Maps::of(target.pid());
    REQUIRE(found);
    const auto maps = std::make_shared<const Maps>(std::move(*found));
    std::vector<Address> frames = unwind(snapshot, maps);
    CHECK(frames.front() == snapshot.registers.rip());
    // deepest, recurse (depth + 1 times), stack, main, two of libc's, _start
    CHECK(frames.size() == 1 + depth + 1 + 2 + 3);
    for (const auto frame : frames) CHECK(maps->module_at(frame));
    // The recursion returns to the same place each time.
    CHECK(std::count(frames.begin(), frames.end(), frames[3]) >= depth - 1);
    CHECK(unwind(snapshot, maps, 5).size() == 5);

    const auto begin = Clock::now();
    for (int n = 0; n < 100; ++n) CHECK(unwind(snapshot, maps).size() == frames.size());
    MESSAGE("microseconds a frame: "
            << std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / 100 /
                   static_cast<double>(frames.size()));
    std::vector<Address> elsewhere;
    std::thread([&] { elsewhere = unwind(snapshot, maps); }).join();
    CHECK(elsewhere == frames);
}

TEST_CASE("a stack without a process has its innermost frame") {
    StackSnapshot snapshot;
    snapshot.pid = 0x7ffffff0;
    snapshot.registers.raw.rip = 42;
    CHECK(unwind(snapshot, std::make_shared<const Maps>()) == std::vector{Address{42}});
}
