#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "proc/proc_text.h"
#include "proc/process_info.h"
#include "support/tracing.h"

using namespace shadowprof;
using namespace shadowprof::proc;
using namespace shadowprof::ptrace;
using namespace shadowprof::ptrace::testing;

namespace {

std::string refusal_of(pid_t pid) {
    std::string line = "attached";
    in_tracing_thread([&] {
        try {
            Tracer::attach(pid);
        } catch (const UserError& error) {
            line = error.what();
        }
    });
    return line;
}

bool contains(const std::string& line, const std::string& part) {
    const bool found = line.find(part) != std::string::npos;
    if (!found) MESSAGE(line);
    return found;
}

// A 32-bit program of two instructions: pause(), over and over.
constexpr unsigned char program_of_32_bits[] = {
    0x7f, 'E',  'L',  'F',  1,    1,    1,    0,    0,    0,    0,    0,
    0,    0,    0,    0,                                                  // ELFCLASS32
    2,    0,    3,    0,    1,    0,    0,    0,                          // ET_EXEC, EM_386
    0x54, 0x80, 0x04, 0x08, 0x34, 0,    0,    0,    0,    0,    0,    0,  // entry, program headers
    0,    0,    0,    0,    0x34, 0,    0x20, 0,    1,    0,    0,    0,
    0,    0,    0,    0,  //
    1,    0,    0,    0,    0,    0,    0,    0,    0,    0x80, 0x04, 0x08,
    0,    0x80, 0x04, 0x08,  // PT_LOAD
    0x5d, 0,    0,    0,    0x5d, 0,    0,    0,    5,    0,    0,    0,
    0,    0x10, 0,    0,                                   //
    0xb8, 29,   0,    0,    0,    0xcd, 0x80, 0xeb, 0xf7,  // pause; again
};

}  // namespace

TEST_CASE("attaching says why it cannot") {
    CHECK(contains(refusal_of(0), "no process"));
    CHECK(contains(refusal_of(-5), "no process"));
    CHECK(contains(refusal_of(0x7ffffff0), "no process 2147483632"));
    CHECK(contains(refusal_of(getpid()), "cannot profile itself"));
    if (status_field(read_proc_file("/proc/2/status"), "Name") == "kthreadd")
        CHECK(contains(refusal_of(2), "kernel thread"));
}

TEST_CASE("a zombie is recognised") {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
    CHECK(contains(refusal_of(child), "zombie"));
    waitpid(child, nullptr, 0);
}

TEST_CASE("a thread that is not a process is told from one") {
    Target target{{"leader-exits-and-others-run"}};
    CHECK(target.line() == "ready");
    pid_t other = 0;
    for (const pid_t tid : threads_of(target.pid()))
        if (tid != target.pid()) other = tid;
    REQUIRE(other != 0);
    CHECK(contains(refusal_of(other), "is a thread of process " + std::to_string(target.pid())));
}

TEST_CASE("a process that is traced already names its tracer") {
    Target target{{"spin"}};
    CHECK(target.line() == "ready");
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        CHECK(contains(refusal_of(target.pid()), "already traces it"));
    });
    CHECK(refusal_of(target.pid()) == "attached");
}

TEST_CASE("a process of another user is not permitted without the capability") {
    if (geteuid() != 0) return;  // needs to become another user
    Target target{{"spin"}};
    CHECK(target.line() == "ready");
    const pid_t child = fork();
    if (child == 0) {
        if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) _exit(1);
        _exit(contains(refusal_of(target.pid()), "another user") ? 0 : 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
}

TEST_CASE("a 32-bit process is declined") {
    char name[] = "/tmp/shadowprof-test-XXXXXX";
    const int fd = mkstemp(name);
    REQUIRE(write(fd, program_of_32_bits, sizeof program_of_32_bits) == sizeof program_of_32_bits);
    fchmod(fd, 0755);
    close(fd);
    const pid_t child = fork();
    if (child == 0) {
        execl(name, name, nullptr);
        _exit(1);
    }
    int status = 0;
    bool ended = false;
    CHECK(becomes_true([&] {
        ended = waitpid(child, &status, WNOHANG) == child;
        return ended || command_line(child) == std::vector<std::string>{name};
    }));
    if (!ended) {
        CHECK(contains(refusal_of(child), "32-bit"));
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    } else {
        MESSAGE("this kernel runs no 32-bit programs");
    }
    unlink(name);
}

TEST_CASE("the end of a process that one attached to is told with its status") {
    for (const bool by_kill : {false, true}) {
        Target target{{"spin"}};
        CHECK(target.line() == "ready");
        in_tracing_thread([&] {
            const auto tracer = Tracer::attach(target.pid());
            target.signal(by_kill ? SIGKILL : SIGTERM);
            std::optional<Event> last;
            pass_on_for(*tracer, std::chrono::seconds{10}, [&](Tracer&, const Event& event) {
                last = event;
                return false;
            });
            REQUIRE(last);
            CHECK(last->kind == EventKind::process_gone);
            CHECK(last->exit_status_known);
            CHECK(last->exit_status == (by_kill ? SIGKILL : 0));
        });
        CHECK(target.exit_status() == (by_kill ? SIGKILL : 0));
    }
}

TEST_CASE("a process whose first thread has ended can be attached to") {
    Target target{{"leader-exits-and-others-run"}};
    CHECK(target.line() == "ready");
    CHECK(becomes_true([&] { return target.state() == 'Z'; }));
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        pass_on_for(*tracer, std::chrono::milliseconds{100});
        CHECK(tracer->alive());
    });
    CHECK(WEXITSTATUS(target.exit_status()) == 44);
}

TEST_CASE("the end of a process whose first thread had ended before is noticed") {
    Target target{{"leader-exits-and-others-run"}};
    CHECK(target.line() == "ready");
    CHECK(becomes_true([&] { return target.state() == 'Z'; }));
    in_tracing_thread([&] {
        const auto tracer = Tracer::attach(target.pid());
        target.signal(SIGKILL);
        pass_on_for(*tracer, std::chrono::seconds{10});
        CHECK(!tracer->alive());
    });
    CHECK(target.exit_status() == SIGKILL);
}
