#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/clock.h"
#include "support/tracing.h"

using namespace shadowprof;
using namespace shadowprof::ptrace;
using namespace shadowprof::ptrace::testing;
using namespace std::chrono_literals;

namespace {

std::string what_the_handler_says(int code, int value) {
    return "code " + std::to_string(code) + " pid " + std::to_string(getpid()) + " value " +
           std::to_string(value);
}

void queue_value(pid_t pid, int value) {
    sigval carried{};
    carried.sival_int = value;
    sigqueue(pid, SIGRTMIN, carried);
}

}  // namespace

TEST_CASE("a queued signal arrives with what it carries") {
    Target target{{"queued-values"}};
    CHECK(target.line() == "ready");
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        for (const int value : {12345, -1, 7}) queue_value(target.pid(), value);
        int seen = 0;
        pass_on_for(*tracer, 10s, [&](Tracer&, const Event& event) {
            seen += event.kind == EventKind::signal && event.signal == SIGRTMIN &&
                    event.info.si_code == SI_QUEUE;
            if (seen == 3) queue_value(target.pid(), 0), ++seen;
            return false;
        });
    });
    for (const int value : {12345, -1, 7, 0})
        CHECK(target.line() == what_the_handler_says(SI_QUEUE, value));
    CHECK(target.exit_status() == 0);
}

TEST_CASE("a signal that is held when the tracer ends is delivered") {
    Target target{{"queued-values"}};
    CHECK(target.line() == "ready");
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        queue_value(target.pid(), 0);
        const auto event = tracer->wait(Clock::now() + 10s);
        REQUIRE(event);
        CHECK(event->kind == EventKind::signal);
    });
    CHECK(target.line() == what_the_handler_says(SI_QUEUE, 0));
    CHECK(target.exit_status() == 0);
}

TEST_CASE("a signal that nobody waited for when the tracer ends is delivered") {
    Target target{{"queued-values"}};
    CHECK(target.line() == "ready");
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        queue_value(target.pid(), 0);
        usleep(20000);
    });
    CHECK(target.line() == what_the_handler_says(SI_QUEUE, 0));
    CHECK(target.exit_status() == 0);
}

TEST_CASE("stopping and continuing works as from a shell") {
    for (const int stop : {SIGSTOP, SIGTSTP}) {
        CAPTURE(stop);
        Target target{{"count"}};
        target.line();
        in_tracing_thread([&] {
            const auto tracer = Tracer::attach(target.pid());
            std::vector<int> told;
            tracer->when_stopped([&](int signal) {
                CHECK(becomes_true([&] { return target.state() == 't'; }));
                told.push_back(signal);
            });
            for (int round = 0; round < 3; ++round) {
                target.signal(stop);
                const auto comes = [&](EventKind kind) {
                    bool came = false;
                    pass_on_for(*tracer, 10s, [&](Tracer&, const Event& event) {
                        came = event.kind == kind;
                        if (kind == EventKind::group_stop && came) CHECK(event.signal == stop);
                        if (came) tracer->pass_on(event);
                        return came;
                    });
                    return came;
                };
                CHECK(comes(EventKind::group_stop));
                const auto stopped = target.next_status();
                CHECK((stopped && WIFSTOPPED(*stopped) && WSTOPSIG(*stopped) == stop));
                // It stays stopped by itself, not by us.
                pass_on_for(*tracer, 20ms, [&](Tracer&, const Event&) {
                    FAIL_CHECK("an event of a stopped process");
                    return false;
                });
                target.signal(SIGCONT);
                CHECK(comes(EventKind::group_stop_ended));
                CHECK(told == std::vector<int>(static_cast<std::size_t>(round) + 1, stop));
                const auto continued = target.next_status();
                CHECK((continued && WIFCONTINUED(*continued)));
            }
        });
        CHECK(target.line() != "");
        CHECK(target.is_released());
        CHECK(target.state() != 'T');
    }
}

TEST_CASE("a stopped process can be attached to and let go of, and stays stopped") {
    for (const auto wait : {0ms, 50ms}) {  // without and with its stop having been waited for
        Target target{{"count"}};
        target.line();
        target.signal(SIGSTOP);
        CHECK(WIFSTOPPED(target.next_status().value_or(0)));
        in_tracing_thread([&] {
            const auto tracer = Tracer::attach(target.pid());
            pass_on_for(*tracer, wait);
        });
        CHECK(target.is_released());
        usleep(20000);
        CHECK(target.state() == 'T');
        target.signal(SIGCONT);
        CHECK(WIFCONTINUED(target.next_status().value_or(0)));
        CHECK(becomes_true([&] { return target.state() != 'T'; }));
    }
}

TEST_CASE("ignored signals do not disturb a sleeper, and handled ones do") {
    const auto native = run_native({target_program(), "atomic-wait", "200"});
    REQUIRE(native.output == "ready\nfine\n");
    const auto traced = run_traced({target_program(), "atomic-wait", "200"});
    CHECK(traced.output == native.output);
    CHECK(traced.status == 0);
}

TEST_CASE("the end of children does not disturb a sleeper that ignores it by default") {
    const auto traced = run_traced({target_program(), "children-end", "40"});
    CHECK(traced.output == "fine\n");
    CHECK(traced.status == 0);
}

TEST_CASE("a wait that is disturbed over and over ends when its time is over") {
    const auto traced = run_traced({target_program(), "disturbed-timeouts"});
    CHECK(traced.output == "fine\n");
    CHECK(traced.status == 0);
}

TEST_CASE("a continue signal to a process that is not stopped does not disturb its sleepers") {
    Target target{{"threads-that-sleep", "20"}};
    CHECK(target.line() == "ready");
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        for (int n = 0; n < 30; ++n) {
            target.signal(SIGCONT);
            pass_on_for(*tracer, 5ms);
        }
    });
    target.signal(SIGTERM);
    CHECK(target.verdict() == "fine");
    CHECK(target.exit_status() == 0);
}

TEST_CASE("a continue signal just before it is let go of does not disturb its sleepers") {
    Target target{{"threads-that-sleep", "20"}};
    CHECK(target.line() == "ready");
    for (int n = 0; n < 50; ++n) {
        in_tracing_thread([&] {
            const auto tracer = Tracer::attach(target.pid());
            target.signal(SIGCONT);
        });
    }
    target.signal(SIGTERM);
    CHECK(target.verdict() == "fine");
    CHECK(target.exit_status() == 0);
}

TEST_CASE("wake() ends a wait early, whether it comes before or during it") {
    Target target{{"spin"}};
    CHECK(target.line() == "ready");
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        tracer->wake();
        const auto begin = Clock::now();
        CHECK(!tracer->wait(Clock::now() + 10s));
        std::thread other([&] {
            std::this_thread::sleep_for(30ms);
            tracer->wake();
        });
        CHECK(!tracer->wait(Clock::now() + 10s));
        other.join();
        CHECK(Clock::now() - begin < 5s);
    });
}
