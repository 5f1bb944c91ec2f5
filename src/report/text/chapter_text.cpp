#include "report/text/chapter_text.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "model/utf8.h"
#include "report/model/steps.h"
#include "report/text/format.h"
#include "report/views/chapters.h"

namespace shadowprof::report {

namespace {

using Kind = ShownColumn::Kind;
using Stress = ShownColumn::Stress;

constexpr std::size_t indent = 2;

bool is_shown(const ShownColumn& column) {
    return column.on == ShownColumn::On::both || column.on == ShownColumn::On::terminal;
}

bool has_steps(const ShownColumn& column) {
    return column.kind == Kind::path || column.kind == Kind::stack;
}

bool is_number(Kind kind) {
    return kind == Kind::share || kind == Kind::ratio || kind == Kind::count ||
           kind == Kind::nanoseconds;
}

std::vector<Column> columns_of(const ShownTable& table) {
    std::vector<Column> columns;
    for (const auto& c : table.columns) {
        if (!is_shown(c) || has_steps(c)) continue;
        const auto align = is_number(c.kind) ? Column::Align::right : Column::Align::left;
        columns.push_back({c.title, align, c.importance, c.stretch});
        if (c.kind == Kind::share)
            columns.push_back({"interval", Column::Align::right, c.interval_importance});
    }
    return columns;
}

std::string table_text(const Profile& p, const ShownTable& table, std::size_t width,
                       const Paint& paint) {
    TextTable text(columns_of(table));
    for (const auto& row : table.rows) {
        std::vector<Cell> cells;
        std::vector<std::string> below;
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
            const auto& column = table.columns[i];
            const auto& cell = row.cells[i];
            if (!is_shown(column)) continue;
            if (const auto* steps = std::get_if<ShownSteps>(&cell)) {
                below = column.kind == Kind::path ? path_steps(p, *steps) : stack_steps(p, *steps);
            } else if (const auto* estimate = std::get_if<Estimate>(&cell)) {
                const auto share = share_texts(*estimate);
                cells.push_back({share.text, Tint::heat, share.share});
                cells.push_back({share.interval, Tint::dim});
            } else {
                const auto tint = column.stress == Stress::bold  ? Tint::bold
                                  : column.stress == Stress::dim ? Tint::dim
                                                                 : Tint::none;
                cells.push_back({cell_text(p, column, cell), tint});
            }
        }
        text.add(std::move(cells), std::move(below));
    }
    return text.empty() ? "  " + paint.dim("none seen") + "\n" : text.render(width, paint);
}

}  // namespace

std::string heading_text(const std::string& title, const std::string& explanation,
                         std::size_t width, const Paint& paint) {
    if (explanation.empty()) return "\n" + paint.bold(title) + "\n";
    auto lines =
        wrap_words("(" + explanation + ")", indent, width - std::min(width, title.size() + 1));
    lines.pop_back();
    return "\n" + paint.bold(title) + " " + paint.dim(lines) + "\n";
}

std::string chapter_text(const Profile& profile, const ShownChapter& chapter, std::size_t width,
                         const Paint& paint) {
    auto explanation = chapter.explanation;
    if (const auto& of = chapter.totals; of.unknown)
        explanation +=
            (explanation.empty() ? "" : "; ") +
            share_text(fraction(static_cast<double>(of.unknown), static_cast<double>(of.total))) +
            " in none of the entries";
    auto out = heading_text(chapter.title, explanation, width, paint);
    for (const auto& note : chapter.notes)
        out += std::string(indent, ' ') + wrap_words(printable(note), indent + 2, width - indent);
    for (const auto& table : chapter.tables) out += table_text(profile, table, width, paint);
    return out;
}

}  // namespace shadowprof::report
