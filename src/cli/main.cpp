#include <CLI/CLI.hpp>
#include <exception>
#include <sstream>
#include <string>

#include "base/error.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/console.h"
#include "cli/version.h"
#include "ptrace/inherited_signals.h"

namespace shadowprof::cli {

namespace {

// The status of bad usage must not be mistaken for the exit status of the program that `run`
// starts.
int usage_status(const CLI::App& app) {
    return static_cast<int>(app.got_subcommand("run") ? ExitStatus::profiler_failed
                                                      : ExitStatus::bad_usage);
}

int parse_and_run(CLI::App& app, int argc, char** argv, const Action& action) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked_for) {  // --help, --version, --completion
        std::ostringstream text;
        const int status = app.exit(asked_for, text, text);
        write_to_stdout(text.str());
        return status;
    }
    return action();
}

}  // namespace

int main(int argc, char** argv) {
    open_missing_streams();
    ptrace::InheritedSignals::remember();

    CLI::App app{"Shows which paths a program takes and which values its instructions see.",
                 "shadowprof"};
    app.set_version_flag("--version", std::string{"shadowprof "} + version);
    app.require_subcommand(1);
    app.footer("COMMAND --help lists the options of a command. See also shadowprof(1).");
    Action action;
    add_run(app, action);
    add_attach(app, action);
    add_report(app, action);
    add_compare(app, action);
    add_diff(app, action);
    add_check(app, action);
    add_export(app, action);
    add_merge(app, action);
    add_doctor(app, action);
    add_completion(app);

    try {
        return parse_and_run(app, argc, argv, action);
    } catch (const CLI::ParseError& error) {
        say("{} (try: shadowprof --help)", error.what());
        return usage_status(app);
    } catch (const UserError& error) {
        say("{}", error.what());
        if (error.status() == ExitStatus::bad_usage) return usage_status(app);
        if (error.status() == ExitStatus::error && app.got_subcommand("run"))
            return static_cast<int>(ExitStatus::profiler_failed);
        return static_cast<int>(error.status());
    } catch (const std::exception& error) {
        say("{}", describe_error(error));
        return static_cast<int>(app.got_subcommand("run") ? ExitStatus::profiler_failed
                                                          : ExitStatus::error);
    }
}

}  // namespace shadowprof::cli
