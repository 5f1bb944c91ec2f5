// Writes a diff and the verdict of a gate for people: for a terminal, or as a comment on a pull
// request.
#pragma once

#include <cstddef>
#include <string>

#include "report/diff/diff.h"
#include "report/diff/gate.h"

namespace shadowprof::report {

struct DiffTextOptions {
    std::size_t width = 100;  // of the terminal; at least 40 is used
    bool color = false;
    std::size_t top = 10;  // rows of each table
};

// `gate` is null if there were no limits.
std::string render_diff(const Diff& diff, const GateResult* gate,
                        const DiffTextOptions& options = {});
std::string render_diff_markdown(const Diff& diff, const GateResult* gate, std::size_t top = 10);

}  // namespace shadowprof::report
