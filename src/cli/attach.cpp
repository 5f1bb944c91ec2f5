#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/profiling.h"
#include "cli/units.h"

namespace shadowprof::cli {

namespace {

struct AttachOptions {
    ProfilingOptions profiling;
    pid_t pid = 0;
};

int attach(const AttachOptions& options) {
    const auto [ending, is_written] =
        profile_target(options.profiling, sampling::Attach{options.pid});
    return static_cast<int>(ending.failed || !is_written ? ExitStatus::error : ExitStatus::fine);
}

}  // namespace

void add_attach(CLI::App& app, Action& action) {
    auto options = std::make_shared<AttachOptions>();
    auto* command = app.add_subcommand("attach", "Profile a process that is already running");
    options->profiling.add_to(*command);
    command
        ->add_option_function<std::string>(
            "PID", [options](const std::string& text) { options->pid = parse_pid(text); },
            "The process")
        ->required()
        ->type_name(process_type);
    command->footer("Ctrl-C detaches and writes the profile; the process keeps running.");
    command->callback([&action, options] { action = [options] { return attach(*options); }; });
}

}  // namespace shadowprof::cli
