#include <CLI/CLI.hpp>
#include <csignal>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/profiling.h"
#include "cli/units.h"
#include "cli/waiting.h"

namespace shadowprof::cli {

namespace {

struct RunOptions {
    ProfilingOptions profiling;
    std::vector<std::string> command;
};

int run(const RunOptions& options) {
    auto [ending, is_written] =
        profile_target(options.profiling, sampling::Launch{options.command});
    const bool was_asked_to_end = ending.stopped_by == "SIGTERM";
    // Who traced it may have seen that it ended, and not how.
    if (!ending.exit_status && !was_asked_to_end) ending.exit_status = await_end_of(ending.pid);
    const int status = ending.exit_status ? shell_status(*ending.exit_status) : 128 + SIGTERM;
    // Success would promise a profile. A program's own failure is more important than ours.
    return status == 0 && !is_written ? static_cast<int>(ExitStatus::profiler_failed) : status;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
    auto options = std::make_shared<RunOptions>();
    auto* command = app.add_subcommand("run", "Start a program and profile it");
    options->profiling.add_to(*command);
    constexpr double usual_stake = 0.05;
    options->profiling.stake = usual_stake;
    command
        ->add_option_function<std::string>(
            "--stake",
            [options](const std::string& text) { options->profiling.stake = parse_seconds(text); },
            "What may be spent besides --overhead, once and soon after the start, so that short\n"
            "runs show something (50ms; 0: nothing)")
        ->type_name("TIME");
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
