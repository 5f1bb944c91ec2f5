#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "support/tracing.h"

using namespace shadowprof;
using namespace shadowprof::ptrace;
using namespace shadowprof::ptrace::testing;

namespace {

// A directory of its own for the test's files.
class Directory {
  public:
    Directory() {
        char name[] = "/tmp/shadowprof-test-XXXXXX";
        path_ = mkdtemp(name);
    }
    ~Directory() {
        for (const auto& file : files_) unlink(file.c_str());
        rmdir(path_.c_str());
    }
    std::string write(const std::string& name, const std::string& text, mode_t mode) {
        files_.push_back(path_ + "/" + name);
        std::ofstream{files_.back()} << text;
        chmod(files_.back().c_str(), mode);
        return files_.back();
    }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
    std::vector<std::string> files_;
};

struct Refusal {
    int status = 0;
    std::string line;
};

Refusal refusal_of(const Arguments& command) {
    Refusal refusal;
    in_tracing_thread([&] {
        try {
            Tracer::launch(command);
        } catch (const UserError& error) {
            refusal = {static_cast<int>(error.status()), error.what()};
        }
    });
    return refusal;
}

}  // namespace

TEST_CASE("a launched program ends as it would natively") {
    for (const Arguments& scenario :
         {Arguments{"exit", "0"}, Arguments{"exit", "7"}, Arguments{"exit", "255"},
          Arguments{"kill-self", "9"}, Arguments{"kill-self", "15"}, Arguments{"kill-self", "6"},
          Arguments{"segfault"}, Arguments{"leader-exits-first"}, Arguments{"exec-from-thread"}}) {
        CAPTURE(scenario[0]);
        Arguments command{target_program()};
        command.insert(command.end(), scenario.begin(), scenario.end());
        const auto native = run_native(command);
        const auto traced = run_traced(command);
        CHECK(traced.status == native.status);
        CHECK(traced.output == native.output);
    }
}

TEST_CASE("the first event is exec, before anything that the program does") {
    std::vector<EventKind> kinds;
    run_traced({target_program(), "exit", "3"}, [&](Tracer& tracer, const Event& event) {
        kinds.push_back(event.kind);
        CHECK((event.kind == EventKind::process_gone || event.thread->tid() == tracer.pid()));
        return false;
    });
    CHECK(kinds == std::vector{EventKind::exec, EventKind::signal, EventKind::process_gone});
}

TEST_CASE("a launched program finds the surroundings that shadowprof was started in") {
    const auto native = run_native({target_program(), "surroundings"});
    const auto traced = run_traced({target_program(), "surroundings"});
    CHECK(traced.output == native.output);
    // The harness ignores SIGUSR2 and blocks SIGRTMIN+3 first, then acts as the profiler. Whoever
    // started the tests may have ignored or blocked others.
    const auto set = [&](const std::string& name) {
        const auto at = traced.output.find(name + ":\t");
        REQUIRE(at != std::string::npos);
        return std::stoull(traced.output.substr(at + name.size() + 2, 16), nullptr, 16);
    };
    CHECK((set("SigIgn") & 0x800) != 0);
    CHECK((set("SigBlk") & 0x1000000000) != 0);
    CHECK(set("SigCgt") == 0);
}

TEST_CASE("programs are found as execvp finds them") {
    CHECK(run_traced({"sh", "-c", "exit 7"}).status == 7 << 8);
    const Directory directory_is_not_a_program;
    CHECK(refusal_of({"no-such-program-anywhere"}).status == 127);
    CHECK(refusal_of({"no-such-program-anywhere"}).line ==
          "no-such-program-anywhere: command not found");
    CHECK(refusal_of({"/no/such/program"}).status == 127);
    CHECK(refusal_of({directory_is_not_a_program.path()}).status == 126);
    CHECK(refusal_of({"/etc/passwd"}).status == 126);
}

TEST_CASE("a script without an interpreter line runs under sh") {
    Directory directory;
    const auto script = directory.write("script", "exit 9\n", 0755);
    CHECK(run_traced({script}).status == run_native({script}).status);
    CHECK(run_traced({script}).status == 9 << 8);
    const auto with_line = directory.write("other", "#!/bin/sh\nexit 8\n", 0755);
    CHECK(run_traced({with_line}).status == 8 << 8);
    const auto bad_interpreter = directory.write("bad", "#!/no/such/interpreter\n", 0755);
    CHECK(refusal_of({bad_interpreter}).status == 127);
}

TEST_CASE("a program that would lose its privileges is refused before it runs") {
    if (geteuid() != 0) return;  // needs a file of another owner
    Directory directory;
    const auto program = directory.write("privileged", "#!/bin/sh\n", 04755);
    chmod(directory.path().c_str(), 0755);
    const pid_t child = fork();
    if (child == 0) {
        if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) _exit(1);
        const auto refusal = refusal_of({program});
        _exit(refusal.line.find("set-user-id") != std::string::npos ? refusal.status : 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == 125);
}
