// Births in programs that are under a seccomp filter, and where they are declined.
#include <doctest/doctest.h>
#include <signal.h>

#include <string>

#include "support/tracing.h"

using namespace shadowprof::ptrace::testing;

namespace {

constexpr int exited_with_3 = 3 << 8;  // the profiler had fewer births than it was asked for

Outcome run_words(std::initializer_list<std::string> command) {
    return run_native(Arguments(command));
}

}  // namespace

TEST_CASE("a program that is under the same seccomp filter as the profiler gives birth") {
    // It has time: beside four busy loops two births were seen to take four seconds.
    const auto outcome =
        run_words({UNDER_FILTER, "harmless", BIRTH_PROFILER, "2", BIRTH_SLEEPERS, "poll", "10000"});
    std::string counted;
    for (int n = 1; n <= 100; ++n) counted += std::to_string(n) + "\n";
    CHECK(outcome.output == counted + "fine\n");
    CHECK(outcome.status == 0);
}

TEST_CASE("a filter that would end the program for a birth is tried by a child, and nobody else") {
    const auto outcome = run_words(
        {UNDER_FILTER, "no-siblings", BIRTH_PROFILER, "5", BIRTH_SLEEPERS, "poll", "300"});
    CHECK(outcome.output == "1\n2\n3\nfine\n");
    CHECK(outcome.status == exited_with_3);
}

TEST_CASE("a program that has a filter of its own is left alone, from when it has it") {
    const auto outcome = run_words(
        {BIRTH_PROFILER, "1000000", UNDER_FILTER, "no-siblings", BIRTH_SLEEPERS, "poll", "300"});
    CHECK(outcome.output == "1\n2\n3\nfine\n");
    CHECK(outcome.status == exited_with_3);
}

TEST_CASE("attached to, too") {
    const auto target = Target::running({UNDER_FILTER, "no-siblings", BIRTH_TEST_TARGET});
    REQUIRE(target->line() == "ready");
    const auto outcome =
        run_words({"timeout", "2", BIRTH_PROFILER, "1", std::to_string(target->pid())});
    CHECK(outcome.status != 0);
    target->signal(SIGTERM);
    CHECK(target->verdict() == "fine");
    CHECK(target->exit_status() == 0);
}
