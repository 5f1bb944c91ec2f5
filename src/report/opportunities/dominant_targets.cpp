// Indirect calls and jumps that nearly always go to one place. A comparison and a direct call is
// predicted better, and the callee can be inlined. The compiler cannot know the place; a profile
// does.
#include <fmt/format.h>

#include "report/opportunities/finders.h"
#include "report/text/format.h"

namespace shadowprof::report {

std::vector<Finding> find_dominant_targets(const Evidence& e, Symbols&) {
    std::vector<Finding> found;
    for (Point at = 0; at < e.points(); ++at) {
        const auto edges = e.edges_from(at);
        if (edges.empty() || e.executions(at) < tuning::least_executions) continue;
        const auto text = e.text(at);
        if (!is_computed_branch(text)) continue;
        const EdgeEntry* top = edges.front();
        for (const auto* edge : edges)
            if (edge->statistics.count > top->statistics.count) top = edge;
        const auto ratio = e.ratio_among(*top);
        if (ratio.low < tuning::least_target_share) continue;

        const auto target = e.point(top->to);
        const auto* method = e.method_at(target);
        const auto length = method ? e.instructions_per_call(*method) : 0;
        const bool is_small = length > 0 && length <= tuning::small_function;
        const double each = (is_call(text) ? 2 : 1) + (is_small ? length : 0);
        const auto count = static_cast<double>(top->statistics.count);
        const auto& p = e.profile();
        Finding f;
        f.location = e.location(at);
        if (is_small) f.in_callees = {top->to};
        f.what = fmt::format(
            "{} goes to {} in {} of {}", is_call(text) ? "the call" : "the jump",
            is_call(text) ? function_label(p, p.at(top->to)) : full_label(p, p.at(top->to)),
            ratio_text(ratio), counted("execution", e.executions(at)));
        f.evidence.push_back(
            fmt::format("{}, {} seen", p.at(f.location).text, counted("target", edges.size())));
        if (length > 0)
            f.evidence.push_back(fmt::format("{} executes {:.0f} instructions a call",
                                             function_label(p, p.at(top->to)), length));
        f.touches = e.share_of_instructions(count * each);
        f.bounds = scaled(e.edge_share(*top), f.touches);
        found.push_back(std::move(f));
    }
    return found;
}

}  // namespace shadowprof::report
