#include "report/text/shown_table.h"

#include <algorithm>
#include <vector>

#include "model/utf8.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

using Kind = model::ShownCell::Kind;

Cell cell_of(const model::ShownCell& shown) {
    if (shown.kind == Kind::count) return {count_text(shown.count)};
    if (shown.kind == Kind::text) return {printable(shown.words)};
    return {share_text(shown.estimate.share), Tint::heat, shown.estimate.share};
}

}  // namespace

std::string text_of(const model::ShownTable& shown, std::size_t most_rows, std::size_t width,
                    const Paint& paint) {
    std::vector<Column> columns;
    for (std::size_t i = 0; i < shown.columns.size(); ++i) {
        const bool is_text = !shown.rows.empty() && shown.rows[0][i].kind == Kind::text;
        columns.push_back(is_text ? Column{shown.columns[i], Column::Align::left, 9, 1}
                                  : Column{shown.columns[i]});
    }
    TextTable table(std::move(columns));
    for (std::size_t row = 0; row < std::min(shown.rows.size(), most_rows); ++row) {
        std::vector<Cell> cells;
        for (const auto& cell : shown.rows[row]) cells.push_back(cell_of(cell));
        table.add(std::move(cells));
    }
    return table.empty() ? "  " + paint.dim("none seen") + "\n" : table.render(width, paint);
}

}  // namespace shadowprof::report
