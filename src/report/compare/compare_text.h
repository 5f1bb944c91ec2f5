// Writes a comparison for people: each measure with an explanation in one line, what was compared,
// and, if asked for, the functions one by one.
#pragma once

#include <cstddef>
#include <string>

#include "report/compare/compare.h"

namespace shadowprof::report {

struct CompareTextOptions {
    std::size_t width = 100;  // of the terminal; at least 40 is used
    bool color = false;
    bool functions = false;
    std::size_t top = 10;  // functions shown
};

std::string render_comparison(const Comparison& comparison, const CompareTextOptions& options = {});

}  // namespace shadowprof::report
