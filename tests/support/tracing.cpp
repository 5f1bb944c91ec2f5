#include "support/tracing.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "proc/proc_text.h"
#include "proc/process_info.h"
#include "ptrace/inherited_signals.h"
#include "ptrace/system.h"

namespace shadowprof::ptrace::testing {

using namespace proc;
namespace {

using shadowprof::testing::patience;

// What shadowprof's main does: remembers the signals it inherited, then changes its own. The odd
// inherited ones are there for the launched program to find.
const bool prepared = [] {
    ::signal(SIGUSR2, SIG_IGN);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGRTMIN + 3);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    InheritedSignals::remember();
    ::signal(SIGPIPE, SIG_IGN);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    return true;
}();

std::vector<char*> argument_pointers(const Arguments& arguments) {
    std::vector<char*> pointers;
    for (const auto& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

bool comes(int fd) {
    pollfd ready{fd, POLLIN, 0};
    return poll(&ready, 1, static_cast<int>(std::chrono::milliseconds{patience}.count())) == 1;
}

// The program's parent: tells its pid and then every change of its state.
[[noreturn]] void keep(const Arguments& command, int output, int statuses) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(output, STDOUT_FILENO);
        // As a shell does. A test runner may have put us into an orphaned process group, where
        // SIGTSTP does nothing.
        setpgid(0, 0);
        InheritedSignals::restore();
        execv(command[0].c_str(), argument_pointers(command).data());
        _exit(127);
    }
    close(output);
    if (write(statuses, &pid, sizeof pid) < 0) _exit(1);
    int status = 0;
    while (waitpid(pid, &status, WUNTRACED | WCONTINUED) == pid) {
        if (write(statuses, &status, sizeof status) < 0) break;
        if (WIFEXITED(status) || WIFSIGNALED(status)) break;
    }
    _exit(0);
}

// Our stdout goes to a file while it lives.
class CapturedOutput {
  public:
    CapturedOutput() {
        fflush(stdout);
        before_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        dup2(fileno(file_), STDOUT_FILENO);
    }
    ~CapturedOutput() {
        dup2(before_, STDOUT_FILENO);
        close(before_);
        fclose(file_);
    }
    CapturedOutput(const CapturedOutput&) = delete;
    CapturedOutput& operator=(const CapturedOutput&) = delete;

    std::string text() const {
        std::string all;
        char buffer[4096];
        off_t at = 0;
        for (ssize_t got; (got = pread(fileno(file_), buffer, sizeof buffer, at)) > 0; at += got)
            all.append(buffer, static_cast<std::size_t>(got));
        return all;
    }

  private:
    static FILE* private_file() {
        FILE* file = tmpfile();
        fcntl(fileno(file), F_SETFD, FD_CLOEXEC);
        return file;
    }
    FILE* file_ = private_file();
    int before_ = -1;
};

}  // namespace

std::string target_program() {
    return TEST_TARGET;
}

Target::Target(const Arguments& scenario) {
    Arguments command{target_program()};
    command.insert(command.end(), scenario.begin(), scenario.end());
    start(command);
}

std::unique_ptr<Target> Target::running(const Arguments& command) {
    std::unique_ptr<Target> target{new Target};
    target->start(command);
    return target;
}

void Target::start(const Arguments& command) {
    int output[2], statuses[2];
    REQUIRE(pipe2(output, O_CLOEXEC) == 0);
    REQUIRE(pipe2(statuses, O_CLOEXEC) == 0);
    keeper_ = fork();
    if (keeper_ == 0) keep(command, output[1], statuses[1]);
    close(output[1]);
    close(statuses[1]);
    output_ = output[0];
    statuses_ = statuses[0];
    REQUIRE(read(statuses_, &pid_, sizeof pid_) == sizeof pid_);
}

Target::~Target() {
    kill(pid_, SIGKILL);
    waitpid(keeper_, nullptr, __WNOTHREAD);
    close(output_);
    close(statuses_);
}

void Target::signal(int signal) const {
    kill(pid_, signal);
}

std::string Target::line() {
    std::size_t end = 0;
    while ((end = buffered_.find('\n')) == std::string::npos) {
        char buffer[4096];
        if (!comes(output_)) return {};
        const auto got = read(output_, buffer, sizeof buffer);
        if (got <= 0) return {};
        buffered_.append(buffer, static_cast<std::size_t>(got));
    }
    const auto line = buffered_.substr(0, end);
    buffered_.erase(0, end + 1);
    return line;
}

std::string Target::verdict() {
    std::string all;
    for (std::string next; !(next = line()).empty();)
        if (next != "ready") all += (all.empty() ? "" : "; ") + next;
    return all;
}

std::optional<int> Target::next_status() {
    int status = 0;
    if (!comes(statuses_) || read(statuses_, &status, sizeof status) != sizeof status) return {};
    return status;
}

int Target::exit_status() {
    while (const auto status = next_status())
        if (WIFEXITED(*status) || WIFSIGNALED(*status)) return *status;
    return -1;
}

bool Target::sleeps_in(long system_call) const {
    const auto wanted = std::to_string(system_call) + " ";
    const auto path = fmt::format("/proc/{}/syscall", pid_);
    return becomes_true([&] { return read_proc_file(path).starts_with(wanted); });
}

char Target::state() const {
    const auto stat = thread_stat(pid_, pid_);
    return stat ? stat->state : '-';
}

bool Target::is_released() const {
    const auto is_traced = [&](pid_t tid) {
        const auto tracer = status_field(
            read_proc_file(fmt::format("/proc/{}/task/{}/status", pid_, tid)), "TracerPid");
        return !tracer.empty() && tracer != "0";
    };
    return becomes_true([&] {
        const auto tids = threads_of(pid_);
        return std::none_of(tids.begin(), tids.end(), is_traced);
    });
}

void in_tracing_thread(const std::function<void()>& body) {
    std::thread([&] {
        try {
            body();
        } catch (const std::exception& error) {
            FAIL_CHECK(std::string{error.what()});
        }
    }).join();
}

Outcome run_traced(const Arguments& command, const Handler& handler) {
    Outcome outcome;
    const CapturedOutput captured;
    in_tracing_thread([&] {
        const auto tracer = Tracer::launch(command);
        const auto deadline = Clock::now() + patience;
        while (tracer->alive() && Clock::now() < deadline) {
            const auto event = tracer->wait(deadline);
            if (!event) continue;
            if (event->kind == EventKind::process_gone) outcome.status = event->exit_status;
            if (!handler || !handler(*tracer, *event)) tracer->pass_on(*event);
        }
        if (tracer->alive()) kill(tracer->pid(), SIGKILL);
    });
    outcome.output = captured.text();
    return outcome;
}

Outcome run_native(const Arguments& command) {
    Outcome outcome;
    const CapturedOutput captured;
    const pid_t pid = fork();
    if (pid == 0) {
        InheritedSignals::restore();
        execvp(command[0].c_str(), argument_pointers(command).data());
        _exit(127);
    }
    waitpid(pid, &outcome.status, 0);
    outcome.output = captured.text();
    return outcome;
}

bool step_everything(Tracer& tracer, const Event& event) {
    if (!event.thread || !event.thread->stopped()) return false;
    if (event.kind == EventKind::group_stop) return false;
    tracer.repair_interrupted_call(*event.thread);
    event.thread->step(event.kind == EventKind::signal ? event.signal : 0);
    return true;
}

void pass_on_for(Tracer& tracer, std::chrono::milliseconds time, const Handler& until) {
    const auto deadline = Clock::now() + time;
    while (tracer.alive() && Clock::now() < deadline) {
        const auto event = tracer.wait(deadline);
        if (!event) continue;
        if (until && until(tracer, *event)) return;
        tracer.pass_on(*event);
    }
}

}  // namespace shadowprof::ptrace::testing
