// How the entries of a type are matched when profiles of two builds are held against each other.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/section.h"
#include "model/statistics.h"

namespace shadowprof::profile {

// Of locations, by index: names that survive a rebuild.
struct SourceNames {
    std::vector<std::string> function;
    std::vector<std::string> place;
};

using NamedStatistics = std::vector<std::pair<std::string, model::Statistics>>;

struct Diffed {
    std::string_view list, measure;  // "edges", and what their counts are: "executions"
    unsigned fineness = 0;           // coarse lists come first
    // Null: the type is not compared.
    NamedStatistics (*entries)(const model::Section&, const SourceNames&) = nullptr;
    const model::Totals& (*totals)(const model::Section&) = nullptr;
};

// By the statistics of entries, and the totals that they are parts of.
template <class OfType, auto name_of, auto statistics, auto totals>
constexpr Diffed diffed(std::string_view list, std::string_view measure, unsigned fineness) {
    return {list, measure, fineness,
            [](const model::Section& section, const SourceNames& names) {
                NamedStatistics named;
                for (const auto& e : static_cast<const OfType&>(section).entries)
                    named.emplace_back(name_of(e, names), e.*statistics);
                return named;
            },
            [](const model::Section& section) -> const model::Totals& {
                return static_cast<const OfType&>(section).*totals;
            }};
}

}  // namespace shadowprof::profile
