#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/profiling.h"

namespace shadowprof::cli {

namespace {

struct RunOptions {
    ProfilingOptions profiling;
    std::vector<std::string> command;
};

// Whoever waits for us waits for the program. Ctrl-C reaches the program as well, which decides
// what happens. Other signals to us have their usual effect.
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

int run(const RunOptions& options) {
    auto [result, is_written] =
        profile_target(options.profiling, sampling::Launch{options.command});
    const bool was_asked_to_end = result.stopped_by == "SIGTERM";
    if (!result.ended && !was_asked_to_end) result.exit_status = await_end_of(result.pid);
    const int status = result.exit_status ? shell_status(*result.exit_status) : 128 + SIGTERM;
    // Success would promise a profile. A program's own failure is more important than ours.
    return status == 0 && !is_written ? static_cast<int>(ExitStatus::profiler_failed) : status;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
    auto options = std::make_shared<RunOptions>();
    auto* command = app.add_subcommand("run", "Start a program and profile it");
    options->profiling.add_to(*command);
    // All words after the program are the program's, even if they look like options.
    command->positionals_at_end();
    command->add_option("PROGRAM", options->command, "The program and its arguments")
        ->expected(-1)
        ->required()
        ->type_name("[ARG...]");
    command->footer(
        "The exit status is the program's (128+N if signal N ended it); 125 if shadowprof failed\n"
        "before the program ran or, after one that ended with 0, could not write its profile; 126\n"
        "if the program cannot be executed, 127 if it was not found.");
    command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace shadowprof::cli
