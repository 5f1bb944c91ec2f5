// The report in a terminal: what ran, how much was seen and what it cost; then opportunities, and
// the hottest entries of each hotlist, each with its share and interval. With
// TextOptions::function it lists one function line by line instead (listing.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "report/model/profile.h"
#include "report/symbols/symbols.h"
#include "report/views/weight.h"

namespace shadowprof::report {

struct TextOptions {
    std::size_t top = 10;     // rows in each table
    std::size_t width = 100;  // of the terminal; at least 40 is used
    bool color = false;
    bool anyway = false;           // tables of shares, although there are too few samples for any
    bool all_code = false;         // findings in libraries of the system as well
    std::optional<Weight> weight;  // what comes first; see views/weight.h
    std::optional<std::string> function;  // a name, a part of one, or a pattern with * and ?
    SymbolOptions symbols;                // where a listing finds code and sources
};

// Throws UserError if no function is called that.
std::string render_text(const Profile& profile, const TextOptions& options = {});

}  // namespace shadowprof::report
