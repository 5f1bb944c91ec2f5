#include "cli/waiting.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "cli/console.h"
#include "cli/profiling.h"
#include "ptrace/stepped_threads.h"

namespace shadowprof::cli {

namespace {

constexpr std::array ends_us{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr const char* word_for_waiting = "--wait-for-program";

// What is needed when nothing can be relied on any more. Zero while nobody is waited for.
std::atomic<pid_t> process_that_waits{0};
std::atomic<pid_t> thread_that_failed{0};
std::array<char, 16> text_of_program, text_of_status, text_of_signal;

// Only async-signal-safe functions are called.
void execute_ourselves() {
    std::array<char, 11> name{"shadowprof"};
    std::array<char, 24> word{};
    std::strncpy(word.data(), word_for_waiting, word.size() - 1);
    const std::array<char*, 6> arguments{
        name.data(),           word.data(),           text_of_program.data(),
        text_of_status.data(), text_of_signal.data(), nullptr};
    execve("/proc/self/exe", arguments.data(), environ);
}

void write(std::array<char, 16>& text, int number) {
    *fmt::format_to_n(text.data(), text.size() - 1, "{}", number).out = 0;
}

// Copies of this process (replicas, snapshots) have no program.
void wait_for_program(int signal) {
    const pid_t process = getpid();
    if (process_that_waits != process) return;
    if (text_of_signal[0] == 0) {
        text_of_signal[0] = static_cast<char>('0' + signal / 10);
        text_of_signal[1] = static_cast<char>('0' + signal % 10);
    }
    if (gettid() == process) return execute_ourselves();
    // A thread that executes keeps what it traces. The first thread traces nothing.
    tgkill(process, process, SIGABRT);
    while (true) pause();
}

void on_signal(int signal) {
    pid_t nobody = 0;
    thread_that_failed.compare_exchange_strong(nobody, gettid());
    ptrace::let_go_of_stepped(signal);
    wait_for_program(signal);
    // Others are asked to let go of what they step, and to do nothing more.
    while (thread_that_failed != gettid()) pause();
    ::signal(signal, SIG_DFL);
    raise(signal);
}

void on_exit() {
    ptrace::let_go_of_stepped(SIGABRT);
    wait_for_program(0);
}

}  // namespace

std::optional<int> await_end_of(pid_t program) {
    sigset_t not_ours;
    sigemptyset(&not_ours);
    for (const int signal : {SIGINT, SIGQUIT}) ::signal(signal, SIG_IGN);
    for (const int signal : {SIGTERM, SIGHUP, SIGTSTP}) sigaddset(&not_ours, signal);
    pthread_sigmask(SIG_UNBLOCK, &not_ours, nullptr);
    int status = 0;
    while (waitpid(program, &status, 0) < 0)
        if (errno != EINTR) return {};
    return status;
}

WaitsIfWeFail::WaitsIfWeFail() {
    // The first thread's stack cannot grow where there is no memory left.
    static std::array<std::byte, 1 << 16> stack;
    const stack_t other{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
    sigaltstack(&other, nullptr);
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    // A handler that leaves by a jump (that of the timer of waits) would leave this one too.
    sigfillset(&action.sa_mask);
    for (const int signal : ends_us) sigdelset(&action.sa_mask, signal);
    for (const int signal : ends_us) {
        struct sigaction current {};
        // A sanitizer has its own.
        if (sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_DFL)
            sigaction(signal, &action, nullptr);
    }
    static const int registered = std::atexit(on_exit);
    static_cast<void>(registered);
}

void WaitsIfWeFail::wait_for(pid_t program) {
    write(text_of_program, program);
    process_that_waits = getpid();
}

void WaitsIfWeFail::program_ended(int wait_status) {
    write(text_of_status, wait_status);
}

WaitsIfWeFail::~WaitsIfWeFail() {
    process_that_waits = 0;
}

std::optional<int> wait_if_we_failed(int argc, char** argv) {
    if (argc != 5 || std::string_view{argv[1]} != word_for_waiting) return {};
    const int signal = std::atoi(argv[4]);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
    const bool has_ended = *argv[3] != 0;
    say("shadowprof itself failed{}; {}there is no profile",
        signal ? fmt::format(" ({})", strsignal(signal)) : "",
        has_ended ? "" : "the program runs on, and ");
    const auto status = has_ended ? std::atoi(argv[3]) : await_end_of(std::atoi(argv[2]));
    if (!status || shell_status(*status) == 0) return static_cast<int>(ExitStatus::profiler_failed);
    return shell_status(*status);
}

}  // namespace shadowprof::cli
