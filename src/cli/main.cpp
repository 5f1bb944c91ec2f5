#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/console.h"
#include "cli/version.h"
#include "cli/waiting.h"
#include "ptrace/inherited_signals.h"

namespace shadowprof::cli {

namespace {

// The status of bad usage must not be mistaken for the exit status of the program that `run`
// starts.
int usage_status(const CLI::App& app) {
    return static_cast<int>(app.got_subcommand("run") ? ExitStatus::profiler_failed
                                                      : ExitStatus::bad_usage);
}

// How many letters have to be changed, put in or taken out to make one word of the other.
std::size_t distance(const std::string& a, const std::string& b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        auto diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const auto changed = diagonal + (a[i] != b[j]);
            diagonal = std::exchange(row[j + 1], std::min({row[j], row[j + 1], diagonal}) + 1);
            row[j + 1] = std::min(row[j + 1], changed);
        }
    }
    return row.back();
}

// The parser would only say that a command is missing.
void refuse_unknown_command(CLI::App& app, const std::string& word) {
    if (word.empty() || word.front() == '-') return;
    std::string nearest;
    std::size_t least = 3;
    for (const auto* command : app.get_subcommands({}))
        if (command->get_name() == word)
            return;
        else if (const auto far = distance(word, command->get_name()); far < least) {
            least = far;
            nearest = command->get_name();
        }
    throw UserError(
        nearest.empty()
            ? fmt::format("there is no command {}; a program is profiled by: shadowprof run {}",
                          word, word)
            : fmt::format("there is no command {}; do you mean {}?", word, nearest),
        ExitStatus::bad_usage);
}

int parse_and_run(CLI::App& app, int argc, char** argv, const Action& action) {
    if (argc > 1) refuse_unknown_command(app, argv[1]);
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
    if (const auto status = wait_if_we_failed(argc, argv)) return *status;
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
