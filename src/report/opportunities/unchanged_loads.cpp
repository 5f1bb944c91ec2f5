// Values that are read from memory again and again and never change. They could be kept in a
// register, computed once, or be constants of the program. Often the compiler could not do this
// because a store between two reads might have changed the value.
//
// All such loads of one function are one finding, because they tend to have one cause.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "profile/value/value_words.h"
#include "report/opportunities/finders.h"
#include "report/opportunities/last_writers.h"
#include "report/opportunities/program_loads.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {
constexpr std::size_t loads_listed = 4;
}

std::vector<Finding> find_unchanged_loads(const Evidence& e, Symbols& symbols) {
    struct LoadsOfFunction {
        std::vector<ProgramLoad> loads;
        double executions = 0;
    };
    std::map<std::pair<ModuleIndex, std::uint64_t>, LoadsOfFunction> functions;
    for (auto& load : program_loads(e, symbols)) {
        if (!is_unchanged(load.value.ratio)) continue;
        const auto& l = e.place(load.at);
        if (!l.function_offset) continue;
        auto& function = functions[{l.module, *l.function_offset}];
        function.executions += static_cast<double>(e.executions(load.at));
        function.loads.push_back(std::move(load));
    }
    std::vector<Finding> found;
    for (auto& [where, function] : functions) {
        auto& loads = function.loads;
        std::stable_sort(loads.begin(), loads.end(), [&](const auto& a, const auto& b) {
            return e.executions(a.at) > e.executions(b.at);
        });
        Finding f;
        f.location = e.location(loads.front().at);
        f.touches = e.share_of_instructions(function.executions);
        f.what = loads.size() == 1
                     ? fmt::format("reads {} in {} of {}",
                                   value_text(loads[0].value.value, *loads[0].value.entry),
                                   ratio_text(loads[0].value.ratio),
                                   counted("execution", e.executions(loads[0].at)))
                     : fmt::format("{} loads in {} read the same value each time", loads.size(),
                                   function_label(e.profile(), e.place(loads.front().at)));
        if (loads.size() == 1) f.evidence.push_back(e.place(loads.front().at).text);
        for (const auto& load : loads) {
            const auto location = e.location(load.at);
            f.covers.push_back(location);
            if (loads.size() == 1 || f.covers.size() > loads_listed) continue;
            f.evidence.push_back(fmt::format(
                "{}: {} yields {}, {} in {}", place_label(e.profile(), e.place(load.at)),
                e.place(load.at).text, value_text(load.value.value, *load.value.entry),
                ratio_text(load.value.ratio), counted("execution", e.executions(load.at))));
        }
        if (loads.size() > loads_listed)
            f.evidence.push_back(fmt::format("and {} more", loads.size() - loads_listed));
        found.push_back(std::move(f));
    }
    return found;
}

}  // namespace shadowprof::report
