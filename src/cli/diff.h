// What `diff` and `check` have in common: how differences are written.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/units.h"
#include "report/diff/diff.h"
#include "report/diff/gate.h"

namespace shadowprof::cli {

struct DiffOutput {
    std::string format = "text";
    std::size_t top = 10;
    double least_share = 0.001;
    bool any_machine = false;
    bool no_color = false;

    void add_options(CLI::App& command);
    void print(const report::Diff& diff, const report::GateResult* gate) const;
};

model::NamedProfile named_profile(const std::string& file);

}  // namespace shadowprof::cli
