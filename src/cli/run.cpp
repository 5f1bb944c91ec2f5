#include <sys/wait.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/profiling.h"

namespace shadowprof::cli {

namespace {

struct RunOptions {
    ProfilingOptions profiling;
    std::vector<std::string> command;
};

int run(const RunOptions& options) {
    const auto result = profile_target(options.profiling, shadow::Launch{options.command});
    // Still running: we were told to let go of it.
    return result.exit_status ? shell_status(*result.exit_status) : 128 + SIGTERM;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
    auto options = std::make_shared<RunOptions>();
    auto* command = app.add_subcommand("run", "Start a program and profile it");
    options->profiling.add_to(*command);
    // What follows the program is the program's, options or not.
    command->positionals_at_end();
    command->add_option("PROGRAM", options->command, "The program and its arguments")
        ->expected(-1)
        ->required()
        ->type_name("[ARG...]");
    command->footer(
        "The exit status is the program's (128+N if signal N ended it); 125 if shadowprof failed\n"
        "before the program ran, 126 if it cannot be executed, 127 if it was not found.");
    command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace shadowprof::cli
