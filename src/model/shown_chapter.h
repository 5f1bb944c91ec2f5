// A chapter of a report: what is said of one section, in a terminal and on the page alike. The
// profile type makes it: what is shown, in which columns, in which order. How a count or a share is
// put into words, what a place in code is called and how wide a column is, is up to who shows it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/hotlist.h"
#include "model/profile.h"
#include "model/statistics.h"

namespace shadowprof::model {

// A place in code, after some words if there are any: "from list_sum list.c:12".
struct ShownPlace {
    LocationIndex at = 0;
    // Of the ends of an edge, the other one: what they are called then tells them apart.
    std::optional<LocationIndex> from = {}, to = {};
    std::optional<LocationIndex> caller = {};  // "called from …"
    std::string_view words = {};
};

// A part of a whole that several things share: "L3 20 %".
struct ShownPart {
    std::string name;
    Estimate share;
};

// A run of instructions, or one place.
struct ShownStep {
    LocationIndex first = 0, last = 0;
    std::uint32_t instructions = 0;
};

using ShownSteps = std::vector<ShownStep>;
using ShownParts = std::vector<ShownPart>;
using ShownPairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// What is in a cell depends on the kind of its column; any may be empty.
class ShownCell : public std::variant<std::monostate, std::string, std::uint64_t, double, Estimate,
                                      ShownPlace, ShownParts, ShownSteps, ShownPairs> {
  public:
    using variant::variant;
    // Not inline, which is slow to compile and alarms GCC 12.
    ShownCell();
    ShownCell(const ShownCell&);
    ShownCell(ShownCell&&) noexcept;
    ShownCell& operator=(const ShownCell&);
    ShownCell& operator=(ShownCell&&) noexcept;
    ~ShownCell();
};

struct ShownColumn {
    enum class Kind : std::uint8_t {
        text,         // a string, or a place that is read as one
        word,         // one of few
        code,         // a string: an operand
        count,        // an integer
        nanoseconds,  // a double
        ratio,        // a double: a share of which no interval is known
        share,        // an estimate
        function,     // a place: the function that it is in
        place,        // a place
        source,       // a place: the file it was written in, or else its module
        instruction,  // a place: the instruction there
        parts,        // the parts of one whole
        path,         // steps, each a block
        stack,        // steps, each a frame: outermost first
        pairs,        // of integers
    };
    enum class Stress : std::uint8_t { none, bold, dim };
    // The page's pictures also draw what no table says.
    enum class On : std::uint8_t { both, terminal, page, pictures };

    ShownColumn(std::string_view of_key, std::string of_title, Kind of_kind = Kind::text)
        : key(of_key), title(std::move(of_title)), kind(of_kind) {}

    std::string_view key;  // in the page's data
    std::string title;
    Kind kind;
    // Where room is short, what is least important is left out first; 9 stays. In a terminal the
    // interval of a share is a column of its own.
    int importance = 9;
    int interval_importance = 3;
    std::size_t stretch = 0;  // its parts of the remaining room; 0: as wide as its widest cell
    Stress stress = Stress::none;
    On on = On::both;

    // The same column, and …
    ShownColumn of(int its_importance) && { return (importance = its_importance, *this); }
    ShownColumn wide(std::size_t parts_of_room) && { return (stretch = parts_of_room, *this); }
    ShownColumn bold() && { return (stress = Stress::bold, *this); }
    ShownColumn dim() && { return (stress = Stress::dim, *this); }
    ShownColumn only(On where) && { return (on = where, *this); }
    // … its interval has this importance.
    ShownColumn with_interval(int its_importance) && {
        return (interval_importance = its_importance, *this);
    }
};

constexpr auto names_of(ShownColumn::Kind) {
    using enum ShownColumn::Kind;
    return std::array<std::pair<ShownColumn::Kind, std::string_view>, 15>{{
        {text, "text"},
        {word, "word"},
        {code, "code"},
        {count, "count"},
        {nanoseconds, "nanoseconds"},
        {ratio, "ratio"},
        {share, "share"},
        {function, "function"},
        {place, "place"},
        {source, "source"},
        {instruction, "instruction"},
        {parts, "parts"},
        {path, "path"},
        {stack, "stack"},
        {pairs, "pairs"},
    }};
}
constexpr auto names_of(ShownColumn::Stress) {
    using enum ShownColumn::Stress;
    return std::array<std::pair<ShownColumn::Stress, std::string_view>, 3>{
        {{none, "none"}, {bold, "bold"}, {dim, "dim"}}};
}

struct ShownRow {
    std::uint64_t count = 0;  // its part of the chapter's total
    std::vector<ShownCell> cells;
};

struct ShownTable {
    std::string_view key;
    std::vector<ShownColumn> columns;
    std::vector<ShownRow> rows;  // a cell a column, most important row first
    std::size_t entries = 0;     // of which these are the first rows
    std::uint64_t rest = 0;      // the counts of the others
};

struct ShownChapter {
    std::string_view key = {};     // of its part of the page
    std::string name = {};         // "Edges"
    std::string title = {};        // "Hot edges"; without one the chapter is left out
    std::string explanation = {};  // in brackets after the title: "12.3k executions of edges"
    std::string about = {};        // on the page: "Branches and where they went"
    Totals totals = {};
    std::uint64_t dropped = 0;            // entries that the profile does not have
    bool is_of_time = false;              // the totals are nanoseconds
    bool needs_samples = true;            // where they are too few, it would be noise
    bool is_noise = false;                // they are too few to tell shares, as a note says
    std::vector<std::string> notes = {};  // lines above the tables
    std::vector<ShownTable> tables = {};
};

// "memory 97 %, L3 3 %": those that are seen.
std::string parts_text(const ShownParts& parts);

// Of what chapters are made.
struct ChapterInputs {
    const Profile& profile;
    std::optional<std::uint64_t> all_instructions;  // that the samples stand for, if that is known
    std::size_t most_rows;                          // of each table
};

// A chapter maker for any section, of one for sections of this type.
template <class OfType, ShownChapter (*make)(const OfType&, const ChapterInputs&)>
ShownChapter chapter_of(const Section& section, const ChapterInputs& inputs) {
    return make(static_cast<const OfType&>(section), inputs);
}

// Makes a table column by column: each with how an entry's cell is made.
template <class Entry>
class TableOf {
  public:
    // Of these entries, in their order. `count_of` gives an entry's part of the chapter's total.
    template <class CountOf>
    TableOf(std::string_view key, std::vector<const Entry*> entries, const ChapterInputs& inputs,
            CountOf count_of)
        : entries_(std::move(entries)) {
        table_.key = key;
        table_.entries = entries_.size();
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            if (i < inputs.most_rows)
                table_.rows.push_back({count_of(*entries_[i]), {}});
            else
                table_.rest += count_of(*entries_[i]);
        }
    }
    // Of all entries of a hotlist.
    TableOf(std::string_view key, const Hotlist<Entry>& list, const ChapterInputs& inputs)
        : TableOf(key, all_of(list.entries), inputs,
                  [](const Entry& e) { return e.statistics.count; }) {}

    template <class CellOf>
    TableOf& column(ShownColumn column, CellOf cell_of) {
        table_.columns.push_back(std::move(column));
        for (std::size_t i = 0; i < table_.rows.size(); ++i)
            table_.rows[i].cells.emplace_back(cell_of(*entries_[i]));
        return *this;
    }
    // Of these totals.
    TableOf& share(Statistics Entry::*part, const Totals& totals, const char* title = "share",
                   int interval_importance = 3) {
        return column(ShownColumn("share", title, ShownColumn::Kind::share)
                          .with_interval(interval_importance),
                      [&](const Entry& e) { return estimate_share(e.*part, totals); });
    }
    TableOf& count(const char* title, int importance) {
        table_.columns.push_back(
            ShownColumn("count", title, ShownColumn::Kind::count).of(importance));
        for (auto& row : table_.rows) row.cells.emplace_back(row.count);
        return *this;
    }

    ShownTable take() { return std::move(table_); }

  private:
    static std::vector<const Entry*> all_of(const std::vector<Entry>& entries) {
        std::vector<const Entry*> all;
        all.reserve(entries.size());
        for (const auto& e : entries) all.push_back(&e);
        return all;
    }

    std::vector<const Entry*> entries_;
    ShownTable table_;
};

}  // namespace shadowprof::model
