// Completion of the command line in shells, written from the same options that --help lists. What
// can stand for the value of an option follows from the type that --help shows: FILE, PID, or the
// words of a list.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace shadowprof::cli {

// Type names of options and arguments.
constexpr const char* file_type = "FILE";
constexpr const char* process_type = "PID";

// Lists the words that an option's value can be, for --help and for completion. Whoever takes the
// value checks it.
CLI::Validator suggest(const std::vector<std::string>& words);

// Adds --completion, which prints the script for a shell.
void add_completion(CLI::App& app);

}  // namespace shadowprof::cli
