// cli: the commands, one file each; the table of contents of the tool. A command's file carries its
// options and its help, parses, calls the rooms below, and turns errors into one line and an exit
// status.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace shadowprof::cli {

// Adds the command to the application. When it was chosen, `run` is set to what it does; that
// returns the exit status.
using Action = std::function<int()>;
void add_run(CLI::App& app, Action& action);
void add_attach(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_diff(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);

// Parses the command line, runs the command; never throws.
int main(int argc, char** argv);

}  // namespace shadowprof::cli
