// What the page of report --html shows, as compact JSON: the hottest part of a profile, arranged
// for reading. Whatever does not go in is summed up, and the page says so.
//
// Lists are rows of plain arrays, and what repeats (labels, instructions, places) is written once
// and referred to by index: `strings`, `locations`. src/report/page/data.js gives the columns
// names.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "report/model/profile.h"
#include "report/symbols/symbols.h"
#include "report/views/weight.h"

namespace shadowprof::report {

struct PageLimits {
    std::size_t rows = 10000;          // of each hotlist
    std::size_t path_blocks = 100000;  // of all paths together
    std::size_t functions = 100;       // with their code
    std::size_t code_lines = 40000;    // of all functions together
    bool all_code = false;             // opportunities in libraries of the system as well
    std::optional<Weight> weight = std::nullopt;  // what comes first; see views/weight.h
};

std::string page_data(const Profile& profile, const SymbolOptions& symbols,
                      const PageLimits& limits = {});

}  // namespace shadowprof::report
