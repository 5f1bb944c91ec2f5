// What the numbers of a report or an export stand for, as an option.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "report/views/weight.h"

namespace shadowprof::cli {

// --weight; nothing if it is not given.
void add_weight(CLI::App& command, std::optional<report::Weight>& weight, const std::string& help);

}  // namespace shadowprof::cli
