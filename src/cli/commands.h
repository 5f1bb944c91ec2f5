// cli: the commands, one file each; this is the table of contents of the tool. The file of a
// command holds its options and its help, and calls the rooms below. Errors end in main.cpp, which
// turns them into one line and an exit status.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace shadowprof::cli {

// Each adds a command to the application. If the command is chosen, it sets the action, which
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
