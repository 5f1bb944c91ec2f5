// What can be seen of a thread: registers, its stack, what /proc tells.
#include <doctest/doctest.h>
#include <elf.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "proc/maps.h"
#include "proc/process_info.h"
#include "ptrace/call_stack.h"
#include "ptrace/harness.h"

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
    std::vector<Address> frames = unwind(snapshot);
    const auto maps = Maps::of(target.pid());
    REQUIRE(maps);
    CHECK(frames.front() == snapshot.registers.rip());
    // deepest, recurse (depth + 1 times), stack, main, two of libc's, _start
    CHECK(frames.size() == 1 + depth + 1 + 2 + 3);
    for (const auto frame : frames) CHECK(maps->module_at(frame));
    // The recursion returns to the same place each time.
    CHECK(std::count(frames.begin(), frames.end(), frames[3]) >= depth - 1);
    CHECK(unwind(snapshot, 5).size() == 5);

    const auto begin = Clock::now();
    for (int n = 0; n < 100; ++n) CHECK(unwind(snapshot).size() == frames.size());
    MESSAGE("microseconds a frame: "
            << std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / 100 /
                   static_cast<double>(frames.size()));
    std::vector<Address> elsewhere;
    std::thread([&] { elsewhere = unwind(snapshot); }).join();
    CHECK(elsewhere == frames);
}

TEST_CASE("a stack without a process has its innermost frame") {
    StackSnapshot snapshot;
    snapshot.pid = 0x7ffffff0;
    snapshot.registers.raw.rip = 42;
    CHECK(unwind(snapshot) == std::vector{Address{42}});
}

TEST_CASE("running threads are told from sleeping ones, and time is counted") {
    Target spinning{{"spin"}}, sleeping{{"sleep-long"}};
    REQUIRE(spinning.line() == "ready");
    REQUIRE(sleeping.line() == "ready");
    CHECK(sleeping.sleeps_in(SYS_epoll_wait));
    CHECK(becomes_true([&] { return is_running(spinning.pid(), spinning.pid()); }));
    CHECK(!is_running(sleeping.pid(), sleeping.pid()));
    CHECK(thread_stat(spinning.pid(), spinning.pid())->state == 'R');
    CHECK(thread_stat(sleeping.pid(), sleeping.pid())->state == 'S');
    CHECK(thread_stat(spinning.pid(), spinning.pid())->processor < 4096);
    const auto before = thread_cpu_time(spinning.pid(), spinning.pid());
    REQUIRE(before);
    CHECK(becomes_true(
        [&] { return thread_cpu_time(spinning.pid(), spinning.pid()) > *before + 1'000'000; }));
    // Of a thread that runs without a break the kernel counts up to its last tick.
    const auto asleep = thread_cpu_time(sleeping.pid(), sleeping.pid());
    CHECK(becomes_true([&] { return thread_cpu_time(spinning.pid(), spinning.pid()) > asleep; }));
}

TEST_CASE("what is gone is told as such") {
    constexpr pid_t nobody = 0x7ffffff0;
    CHECK(!thread_stat(nobody, nobody));
    CHECK(!thread_cpu_time(nobody, nobody));
    CHECK(!signal_sets(nobody, nobody));
    CHECK(threads_of(nobody).empty());
    CHECK(command_line(nobody).empty());
    CHECK(!is_running(nobody, nobody));
}

TEST_CASE("a command line has its arguments, empty ones too") {
    Target target{{"spin", "", "a b"}};
    REQUIRE(target.line() == "ready");
    CHECK(command_line(target.pid()) ==
          std::vector<std::string>{target_program(), "spin", "", "a b"});
}

TEST_CASE("signals that do nothing are known") {
    Target target{{"spin"}};  // inherits an ignored SIGUSR2, handles SIGTERM
    REQUIRE(target.line() == "ready");
    const auto sets = signal_sets(target.pid(), target.pid());
    REQUIRE(sets);
    for (const int signal : {SIGUSR2, SIGCHLD, SIGCONT, SIGURG, SIGWINCH}) {
        CAPTURE(signal);
        CHECK(sets->ignores(signal));
    }
    for (const int signal : {SIGTERM, SIGINT, SIGTSTP, SIGSEGV, SIGRTMIN}) {
        CAPTURE(signal);
        CHECK(sets->acts_on(signal));
    }
    CHECK(sets->caught == std::uint64_t{1} << (SIGTERM - 1));
    SignalSets handled;
    handled.caught = std::uint64_t{1} << (SIGCHLD - 1);
    CHECK(handled.acts_on(SIGCHLD));
}
