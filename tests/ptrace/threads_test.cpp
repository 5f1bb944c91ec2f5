#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "proc/proc_text.h"
#include "proc/process_info.h"
#include "support/tracing.h"

using namespace shadowprof;
using namespace shadowprof::proc;
using namespace shadowprof::ptrace;
using namespace shadowprof::ptrace::testing;
using namespace std::chrono_literals;

TEST_CASE("every thread's start and end is told") {
    int started = 0, gone = 0;
    std::set<pid_t> alive;
    const auto outcome =
        run_traced({target_program(), "storm", "100"}, [&](Tracer&, const Event& event) {
            if (event.kind == EventKind::thread_started) {
                ++started;
                CHECK(alive.insert(event.thread->tid()).second);
            }
            if (event.kind == EventKind::thread_gone) {
                ++gone;
                CHECK(alive.erase(event.thread->tid()) == 1);
            }
            return false;
        });
    CHECK(outcome.output == "fine\n");
    CHECK(outcome.status == 0);
    CHECK(started == 404);
    CHECK(gone == 404);
}

TEST_CASE("attaching catches threads that are being created") {
    for (int round = 0; round < 30; ++round) {
        Target target{{"hectic"}};
        REQUIRE(target.line() == "ready");
        in_tracing_thread([&] {
            const auto tracer = Tracer::attach(target.pid());
            // Each thread is ours, or dead, before long.
            const auto is_missed = [&](pid_t tid) {
                const auto status = read_proc_file("/proc/" + std::to_string(target.pid()) +
                                                   "/task/" + std::to_string(tid) + "/status");
                const auto owner = status_field(status, "TracerPid");
                const auto state = status_field(status, "State");
                return !owner.empty() && owner != std::to_string(gettid()) &&
                       state.front() != 'Z' && state.front() != 'X';
            };
            bool all_ours = false;
            for (int look = 0; look < 1000 && !all_ours; ++look) {
                pass_on_for(*tracer, 2ms);
                const auto tids = threads_of(target.pid());
                all_ours = std::none_of(tids.begin(), tids.end(), is_missed);
            }
            CHECK(all_ours);
        });
    }
}

TEST_CASE("exec from a thread that is not the first leaves one thread, the first") {
    std::vector<EventKind> execs;
    const auto outcome =
        run_traced({target_program(), "exec-from-thread"}, [&](Tracer& tracer, const Event& event) {
            if (event.kind == EventKind::exec) {
                execs.push_back(event.kind);
                CHECK(event.thread->tid() == tracer.pid());
                CHECK(tracer.threads() == std::vector{event.thread});
                CHECK(event.thread->registers());
            }
            return false;
        });
    CHECK(execs.size() == 2);
    CHECK(outcome.status == 42 << 8);
}

// Each holds what the other waits for: the exec the lock that a seizure takes, and we the ends of
// the threads that the exec has ended.
TEST_CASE("a program that is attached to while its threads end in an exec goes on") {
    Target target{{"exec-again", "300"}};
    bool has_ended = false;
    while (!has_ended) {
        in_tracing_thread([&] {
            try {
                const auto tracer = Tracer::attach(target.pid());
                pass_on_for(*tracer, 5ms);
                has_ended = !tracer->alive();
            } catch (const UserError&) {
                has_ended = true;
            }
        });
    }
    CHECK(target.exit_status() == 44 << 8);
}

TEST_CASE("children run free and undisturbed") {
    std::set<pid_t> seen;
    const auto outcome =
        run_traced({target_program(), "run-children", "20"}, [&](Tracer&, const Event& event) {
            if (event.thread) seen.insert(event.thread->tid());
            return false;
        });
    CHECK(outcome.output == "fine\n");
    CHECK(outcome.status == 0);
    CHECK(seen.size() == 1);
}

TEST_CASE("a process that shares the program's memory is not taken for a thread") {
    const auto outcome = run_traced({target_program(), "shares-memory"});
    CHECK(outcome.output == "fine\n");
    CHECK(outcome.status == 0);
}

TEST_CASE("killing the program at any moment ends everything") {
    Random random{4};
    for (int round = 0; round < 60; ++round) {
        Target target{{"hectic"}};
        REQUIRE(target.line() == "ready");
        in_tracing_thread([&] {
            const auto tracer = Tracer::attach(target.pid());
            const auto killed_at = Clock::now() + std::chrono::microseconds{random.below(8000)};
            bool killed = false, gone = false;
            const bool steps = round % 2 == 0;
            const auto deadline = Clock::now() + 10s;
            while (!gone && Clock::now() < deadline) {
                if (!killed && Clock::now() >= killed_at) {
                    target.signal(SIGKILL);
                    killed = true;
                }
                if (!killed)
                    for (auto* thread : tracer->threads())
                        if (!thread->stopped() && random.chance(0.2)) thread->interrupt();
                const auto event = tracer->wait(Clock::now() + 1ms);
                if (!event) continue;
                gone = event->kind == EventKind::process_gone;
                if (gone) CHECK(event->exit_status == SIGKILL);
                if (!steps || !step_everything(*tracer, *event)) tracer->pass_on(*event);
            }
            CHECK(gone);
            CHECK(!tracer->alive());
            CHECK(tracer->threads().empty());
            CHECK(!tracer->wait(Clock::now() + 1ms));
        });
        CHECK(target.exit_status() == SIGKILL);
    }
}
