// Rows of the lists in the page's data.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace shadowprof::report {

// The cell of a column: cells come after the row's count.
inline const nlohmann::json& cell_of(const nlohmann::json& list, const nlohmann::json& row,
                                     std::string_view key) {
    const auto& columns = list.at("columns");
    for (std::size_t c = 0; c < columns.size(); ++c)
        if (columns[c].at("key") == key) return row.at(c + 1);
    throw std::out_of_range("no column " + std::string(key));
}

}  // namespace shadowprof::report
