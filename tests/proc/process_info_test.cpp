#include "proc/process_info.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/tracing.h"

using namespace shadowprof::proc;
using namespace shadowprof::ptrace::testing;

TEST_CASE("running threads are distinguished from sleeping ones, and time is counted") {
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

TEST_CASE("what is gone is reported as gone") {
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

TEST_CASE("a program is called what it was started as") {
    std::array<int, 2> never{};
    REQUIRE(pipe(never.data()) == 0);
    const pid_t shell = fork();
    if (shell == 0) {
        dup2(never[0], STDIN_FILENO);
        close(never[1]);
        execlp("sh", "sh", "-c", "read x", nullptr);
        _exit(1);
    }
    // Mostly a link to another shell.
    CHECK(becomes_true([&] { return program_of(shell).ends_with("/sh"); }));
    close(never[1]);
    close(never[0]);
    waitpid(shell, nullptr, 0);

    Target itself{{"sleep-long"}};
    REQUIRE(itself.line() == "ready");
    CHECK(program_of(itself.pid()).ends_with("target"));
}

// dot(1) of Debian is a link in /usr/bin to /usr/sbin/libgvc6-config-update.
TEST_CASE("a program is called what it was started as from another folder") {
    namespace fs = std::filesystem;
    std::string made = (fs::temp_directory_path() / "shadowprof-test-XXXXXX").string();
    REQUIRE(mkdtemp(made.data()));
    const auto folder = fs::canonical(made), bin = folder / "bin";
    fs::create_directory(bin);
    fs::create_directory(folder / "sbin");
    fs::copy_file(fs::canonical("/bin/sleep"), folder / "sbin" / "of-another-name");
    fs::create_symlink("../sbin/of-another-name", bin / "short");
    const std::string before = getenv("PATH");
    REQUIRE(setenv("PATH", (bin.string() + ":" + before).c_str(), 1) == 0);
    const pid_t child = fork();
    if (child == 0) {
        execlp("short", "short", "60", nullptr);
        _exit(1);
    }
    CHECK(becomes_true([&] { return program_of(child) == (bin / "short").string(); }));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    setenv("PATH", before.c_str(), 1);
    fs::remove_all(folder);
}
