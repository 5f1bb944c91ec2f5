// Sleeping threads must not notice that a profiler comes, looks and goes.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "proc/proc_text.h"
#include "proc/process_info.h"
#include "support/tracing.h"

using namespace shadowprof;
using namespace shadowprof::proc;
using namespace shadowprof::ptrace;
using namespace shadowprof::ptrace::testing;
using namespace std::chrono_literals;

namespace {

std::string maps_of(const Target& target) {
    return read_proc_file("/proc/" + std::to_string(target.pid()) + "/maps");
}

// Interrupts threads for a while, as a sampler does.
long interrupt_at_random(Tracer& tracer, Random& random, std::chrono::milliseconds time,
                         bool sleeping_ones_too) {
    long interruptions = 0;
    const auto end = Clock::now() + time;
    while (tracer.alive() && Clock::now() < end) {
        const auto threads = tracer.threads();
        if (!threads.empty()) {
            auto* thread = threads[random.below(threads.size())];
            if (!thread->stopped() &&
                (sleeping_ones_too || is_running(tracer.pid(), thread->tid())))
                thread->interrupt();
        }
        const auto event = tracer.wait(Clock::now() + std::chrono::microseconds{200});
        if (!event) continue;
        interruptions += event->kind == EventKind::interrupted;
        tracer.pass_on(*event);
    }
    return interruptions;
}

void attach_again_and_again(bool sleeping_ones_too) {
    Target target{{"threads-that-sleep", "50"}};
    REQUIRE(target.line() == "ready");
    Random random{1};
    long interruptions = 0;
    for (int round = 0; round < 100; ++round) {
        in_tracing_thread([&] {
            const auto tracer = Tracer::attach(target.pid());
            interruptions += interrupt_at_random(
                *tracer, random, std::chrono::milliseconds{random.below(30)}, sleeping_ones_too);
        });
        CHECK(target.is_released());
    }
    target.signal(SIGTERM);
    CHECK(target.verdict() == "fine");
    CHECK(target.exit_status() == 0);
    CHECK(interruptions > 20);
}

}  // namespace

TEST_CASE("fifty threads that come, sleep and go survive a hundred visits") {
    attach_again_and_again(false);
}

TEST_CASE("even interrupted in their sleep, they see no EINTR") {
    attach_again_and_again(true);
}

// Sleepers are left alone here: one that is interrupted just as it falls asleep would see EINTR if
// the profiler died in the microseconds before it could repair that.
TEST_CASE("the program survives the profiler's sudden death") {
    for (const bool interrupts : {false, true}) {
        CAPTURE(interrupts);
        Target target{interrupts ? Arguments{"spin"} : Arguments{"threads-that-sleep", "30"}};
        REQUIRE(target.line() == "ready");
        Random random{5};
        for (int round = 0; round < 30; ++round) {
            const pid_t profiler = fork();
            if (profiler == 0) {
                in_tracing_thread([&] {
                    const auto tracer = Tracer::attach(target.pid());
                    if (interrupts)
                        interrupt_at_random(*tracer, random, 10s, false);
                    else
                        pass_on_for(*tracer, 10s);
                });
                _exit(1);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{random.below(20)});
            kill(profiler, SIGKILL);
            int status = 0;
            waitpid(profiler, &status, 0);
            CHECK(WTERMSIG(status) == SIGKILL);
            CHECK(target.is_released());
        }
        target.signal(SIGTERM);
        CHECK(target.verdict() == "fine");
        CHECK(target.exit_status() == 0);
    }
}

TEST_CASE("a visit leaves the memory map as it was") {
    Target target{{"sleep-long"}};
    REQUIRE(target.sleeps_in(SYS_epoll_wait));
    const auto before = maps_of(target);
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        Random random{2};
        interrupt_at_random(*tracer, random, 50ms, true);
        CHECK(maps_of(target) == before);
    });
    CHECK(maps_of(target) == before);
    CHECK(!before.empty());
}

TEST_CASE("an interruption is answered, once, also when other events come first") {
    for (const char* scenario : {"hectic", "breed"}) {
        CAPTURE(std::string{scenario});
        Target target{{scenario}};
        REQUIRE(target.line() == "ready");
        in_tracing_thread([&] {
            const auto tracer = Tracer::attach(target.pid());
            Random random{3};
            int answered = 0;
            bool over = true;
            for (int round = 0; round < 300 && over; ++round) {
                const auto threads = tracer->threads();
                auto* thread = threads[random.below(threads.size())];
                const pid_t tid = thread->tid();
                if (!thread->interrupt()) continue;
                over = false;
                pass_on_for(*tracer, 5s, [&](Tracer&, const Event& event) {
                    const bool ours = event.thread && event.thread->tid() == tid;
                    if (event.kind == EventKind::interrupted) {
                        CHECK(ours);
                        ++answered;
                    }
                    over = ours && (event.kind == EventKind::interrupted ||
                                    event.kind == EventKind::thread_gone);
                    if (over) tracer->pass_on(event);
                    return over;
                });
                CHECK(over);
            }
            CHECK(answered > 100);
        });
        CHECK(target.is_released());
    }
}
