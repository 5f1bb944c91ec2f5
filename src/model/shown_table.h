// A section as a table for people: what the text report and the page show of a profile type that
// has no chapter of its own there. It says what is shown; how a count or a share is put into words
// is up to them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/statistics.h"

namespace shadowprof::model {

struct ShownCell {
    enum class Kind { text, count, share };
    Kind kind = Kind::text;
    std::string words;
    std::uint64_t count = 0;
    Estimate estimate;  // of a share

    static ShownCell of_text(std::string text) { return {Kind::text, std::move(text), 0, {}}; }
    static ShownCell of_count(std::uint64_t n) { return {Kind::count, {}, n, {}}; }
    static ShownCell of_share(const Statistics& part, const Totals& of) {
        return {Kind::share, {}, 0, estimate_share(part, of)};
    }
};

struct ShownTable {
    std::string title;        // "Instruction mix"
    std::string explanation;  // "executions by extension and category"
    Totals totals;
    std::vector<std::string> columns;
    std::vector<std::vector<ShownCell>> rows;  // a cell a column, most important row first
};

}  // namespace shadowprof::model
