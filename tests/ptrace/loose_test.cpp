// Threads that are let go of at a signal, until they are asked to stop.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/clock.h"
#include "proc/proc_text.h"
#include "support/tracing.h"

using namespace shadowprof;
using namespace shadowprof::ptrace;
using namespace shadowprof::ptrace::testing;
using namespace std::chrono_literals;

namespace {

void queue_value(pid_t pid, int value) {
    sigval carried{};
    carried.sival_int = value;
    sigqueue(pid, SIGRTMIN, carried);
}

std::string what_the_handler_says(int value) {
    return "code -1 pid " + std::to_string(getpid()) + " value " + std::to_string(value);
}

std::string name_of(pid_t pid) {
    return proc::read_proc_file("/proc/" + std::to_string(pid) + "/comm");
}

// Sends a signal that nobody minds, and lets go of the thread that gets it.
bool let_go_with(Tracer& tracer, int signal) {
    kill(tracer.pid(), signal);
    bool is_let_go = false;
    pass_on_for(tracer, 10s, [&](Tracer&, const Event& event) {
        is_let_go = event.kind == EventKind::signal && event.signal == signal;
        if (is_let_go) CHECK(tracer.let_go(event));
        return is_let_go;
    });
    return is_let_go;
}

// A handler that lets go of a program before its first instruction, and goes on looking after it.
Handler lets_go_at_first() {
    return [](Tracer& tracer, const Event& event) {
        if (event.kind == EventKind::exec) kill(tracer.pid(), SIGURG);
        tracer.look_for_births_and_ends();
        return tracer.let_go(event);
    };
}

}  // namespace

TEST_CASE("a thread that is let go of gets the signal, and is unheard until it is asked to stop") {
    Target target{{"queued-values"}};
    CHECK(target.line() == "ready");
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        for (int value = 1; value < 4; ++value) {
            queue_value(target.pid(), 10 * value);
            const auto event = tracer->wait(Clock::now() + 10s);
            REQUIRE(event);
            REQUIRE(event->kind == EventKind::signal);
            auto& thread = *event->thread;
            CHECK(tracer->let_go(*event));
            CHECK(thread.is_loose());
            CHECK(target.line() == what_the_handler_says(10 * value));
            CHECK(target.is_released());

            queue_value(target.pid(), 10 * value + 1);
            CHECK(!tracer->wait(Clock::now() + 20ms));
            CHECK(target.line() == what_the_handler_says(10 * value + 1));

            CHECK(tracer->ask_to_stop(thread));
            const auto stop = tracer->wait(Clock::now() + 10s);
            REQUIRE(stop);
            CHECK(stop->kind == EventKind::interrupted);
            CHECK(stop->thread == &thread);
            tracer->pass_on(*stop);
        }
        tracer->hold_all();
    });
    queue_value(target.pid(), 0);
    CHECK(target.line() == what_the_handler_says(0));
    CHECK(target.exit_status() == 0);
}

TEST_CASE("only a signal's delivery is a place to let go of a thread") {
    Target target{{"count"}};
    CHECK(!target.line().empty());
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        auto* const thread = tracer->thread(target.pid());
        REQUIRE(thread->interrupt());
        const auto event = tracer->wait(Clock::now() + 10s);
        REQUIRE(event);
        CHECK(!tracer->let_go(*event));
        tracer->pass_on(*event);
        // Nor is one that somebody waits to hear of.
        kill(target.pid(), SIGTSTP);
        const auto stop = tracer->wait(Clock::now() + 10s);
        REQUIRE(stop);
        CHECK(stop->kind == EventKind::signal);
        CHECK(!tracer->let_go(*stop));
        tracer->pass_on(*stop);
        kill(target.pid(), SIGCONT);
        pass_on_for(*tracer, 20ms);
    });
}

TEST_CASE("the end of a program that was let go of is told, with its status") {
    for (const auto& command :
         {Arguments{target_program(), "exit", "5"}, Arguments{target_program(), "segfault"}})
        CHECK(run_traced(command, lets_go_at_first()).status == run_native(command).status);

    Target target{{"count"}};
    CHECK(!target.line().empty());
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        REQUIRE(let_go_with(*tracer, SIGURG));
        kill(target.pid(), SIGKILL);
        const auto end = tracer->wait(Clock::now() + 10s);
        REQUIRE(end);
        CHECK(end->kind == EventKind::process_gone);
        CHECK(!end->exit_status_known);
    });
}

TEST_CASE("threads come and go while their creator is let go of") {
    const auto outcome = run_traced({target_program(), "storm", "50"}, lets_go_at_first());
    CHECK(outcome.output == "fine\n");
    CHECK(outcome.status == 0);
}

TEST_CASE("another program of a process that was let go of is known for one") {
    const auto target = Target::running({"/bin/sh", "-c", "sleep 2; exec sleep 1000"});
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target->pid());
        REQUIRE(let_go_with(*tracer, SIGURG));
        auto* const thread = tracer->thread(target->pid());
        tracer->look_for_births_and_ends();
        CHECK(!tracer->wait(Clock::now() + 10ms));
        CHECK(becomes_true([&] { return name_of(target->pid()) == "sleep\n"; }));
        CHECK(!tracer->ask_to_stop(*thread));
        const auto event = tracer->wait(Clock::now() + 10s);
        REQUIRE(event);
        CHECK(event->kind == EventKind::exec);
        CHECK(event->thread == thread);
        // From now on it is held.
        kill(target->pid(), SIGURG);
        auto signal = tracer->wait(Clock::now() + 10s);
        REQUIRE(signal);
        if (signal->kind == EventKind::exec) {
            // It has its name a moment before the kernel reports the call: then it is told twice.
            tracer->pass_on(*signal);
            signal = tracer->wait(Clock::now() + 10s);
            REQUIRE(signal);
        }
        CHECK(signal->kind == EventKind::signal);
        tracer->pass_on(*signal);
    });
}

TEST_CASE("that a program was stopped is told, also if it was let go of") {
    in_tracing_thread([&] {
        const auto tracer = Tracer::launch({"sleep", "1000"});
        std::vector<int> told;
        tracer->when_stopped([&](int signal) { told.push_back(signal); });
        REQUIRE(let_go_with(*tracer, SIGURG));
        kill(tracer->pid(), SIGSTOP);
        for (int look = 0; look < 1000 && told.empty(); ++look)
            CHECK(!tracer->wait(Clock::now() + 10ms));
        CHECK(told == std::vector<int>{SIGSTOP});
        kill(tracer->pid(), SIGCONT);
        kill(tracer->pid(), SIGKILL);
        const auto end = tracer->wait(Clock::now() + 10s);
        REQUIRE(end);
        CHECK(end->kind == EventKind::process_gone);
        CHECK((end->exit_status_known && WTERMSIG(end->exit_status) == SIGKILL));
    });
}

TEST_CASE("a program that another process traces meanwhile is left to that") {
    Target target{{"count"}};
    CHECK(!target.line().empty());
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        REQUIRE(let_go_with(*tracer, SIGURG));
        auto* const thread = tracer->thread(target.pid());
        const pid_t other = fork();
        if (other == 0) {
            ::ptrace(PTRACE_SEIZE, target.pid(), nullptr, nullptr);
            while (true) pause();
        }
        CHECK(becomes_true([&] { return !target.is_released(); }));
        CHECK(!tracer->ask_to_stop(*thread));
        CHECK(tracer->why_not_held().find("already traces it") != std::string::npos);
        kill(other, SIGKILL);
        waitpid(other, nullptr, 0);
        CHECK(becomes_true([&] { return tracer->ask_to_stop(*thread); }));
        CHECK(tracer->why_not_held().empty());
        const auto stop = tracer->wait(Clock::now() + 10s);
        REQUIRE(stop);
        CHECK(stop->kind == EventKind::interrupted);
        tracer->pass_on(*stop);
    });
}
