// Forward branches that are nearly always taken. They jump over the unusual case, which lies where
// the usual one should. A branch that falls through costs less, and then the code that runs lies
// together in the instruction cache. Compilers lay out code by guesses or by __builtin_expect; a
// profile knows.
#include <fmt/format.h>

#include "report/opportunities/finders.h"
#include "report/text/format.h"

namespace shadowprof::report {

std::vector<Finding> find_wrong_layouts(const Evidence& e, Symbols&) {
    std::vector<Finding> found;
    for (Point at = 0; at < e.points(); ++at) {
        if (e.executions(at) < tuning::least_executions || !is_conditional_jump(e.text(at)))
            continue;
        for (const auto* edge : e.edges_from(at)) {
            const auto target = e.point(edge->to);
            if (edge->kind != EdgeKind::taken || target <= at || !e.same_function(at, target))
                continue;
            const auto ratio = e.ratio_among(*edge);
            if (ratio.low < tuning::least_taken_share) continue;
            const auto& p = e.profile();
            const auto& from = p.at(edge->from);
            const auto& to = p.at(edge->to);
            Finding f;
            f.location = edge->from;
            f.what = fmt::format("taken in {} of {}: the usual way jumps over {} bytes",
                                 ratio_text(ratio), counted("execution", e.executions(at)),
                                 to.offset - from.offset);
            f.evidence.push_back(fmt::format("{}, to {}", from.text, place_label(p, to)));
            f.touches = e.share_of_instructions(static_cast<double>(edge->statistics.count));
            f.bounds = scaled(e.edge_share(*edge), f.touches);
            found.push_back(std::move(f));
        }
    }
    return found;
}

}  // namespace shadowprof::report
