#include "profile/doubts.h"

#include "profile/edge/edge_section.h"
#include "profile/method/method_section.h"
#include "profile/path/path_section.h"

namespace shadowprof::profile {

std::optional<std::string> doubt_about(const model::Profile& p) {
    for (const auto& section : p.sections)
        if (const auto why = section->doubt()) return std::string(section->key()) + ": " + *why;

    const auto* methods = p.find<MethodSection>();
    if (methods)
        for (const auto& e : methods->entries)
            if (Wide{e.calls} + e.back_edges != e.statistics.count)
                return "methods: an entry's calls and loops are not its count";

    const auto& seen = p.coverage;
    if (seen.blocks > seen.instructions) return "coverage: more blocks than instructions";
    if (seen.instructions > 0 && seen.samples == 0) return "coverage: instructions in no sample";
    const auto& all = seen.weighted_instructions;
    if (all && methods && methods->instructions.total > *all)
        return "methods: more instructions than in the run";
    if (const auto* paths = p.find<PathSection>()) {
        Wide executed = 0;  // far from its limits
        for (const auto& e : paths->entries)
            executed += Wide{e.statistics.count} * e.instructions();
        if (executed > all.value_or(methods ? methods->instructions.total : ~std::uint64_t{0}))
            return "paths: more instructions than in the run";
        if (all && paths->totals.exhaustive && *all != seen.instructions)
            return "coverage: all was seen, but not all instructions";
    }

    constexpr double longest = 1e9;  // seconds: thirty years, merged profiles included
    for (const auto time : {p.run.duration, p.cost.stop_time, p.cost.extra_cpu})
        if (time < 0 || time > longest) return "run, cost: a time that cannot be";
    constexpr double slowest = 1e6;
    if (const auto slowdown = p.cost.slowdown.value_or(0); slowdown < -1 || slowdown > slowest)
        return "cost: a slowdown that cannot be";
    return {};
}

}  // namespace shadowprof::profile
