// Small functions that are called very often. The call, the return and the moving of arguments are
// a good part of their work, and the compiler cannot optimise across the call.
//
// All calls of one function in its module are one finding, because it is the function that has to
// be made inlinable. Functions of other modules and PLT stubs are left out: no compiler inlines
// these.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/opportunities/finders.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t sites_listed = 3;

bool is_inlinable(const Evidence& e, const EdgeEntry& edge) {
    const auto from = e.point(edge.from), to = e.point(edge.to);
    return edge.kind == EdgeKind::call && !is_computed_branch(e.text(from)) &&
           e.place(from).module == e.place(to).module && !e.same_function(from, to) &&
           !e.is_plt_stub(to);
}

}  // namespace

std::vector<Finding> find_calls_to_inline(const Evidence& e, Symbols&) {
    std::vector<Finding> found;
    const auto& p = e.profile();
    for (Point entry = 0; entry < e.points(); ++entry) {
        const auto* method = e.method_at(entry);
        const auto length = method ? e.instructions_per_call(*method) : 0;
        if (length <= 0 || length > tuning::small_function) continue;
        std::vector<const EdgeEntry*> calls;
        std::uint64_t count = 0;
        for (const auto* edge : e.edges_to(entry)) {
            if (!is_inlinable(e, *edge)) continue;
            calls.push_back(edge);
            count += edge->statistics.count;
        }
        if (count < tuning::least_executions) continue;
        std::stable_sort(calls.begin(), calls.end(), [](const auto* a, const auto* b) {
            return a->statistics.count > b->statistics.count;
        });
        constexpr double call_and_return = 2;
        Finding f;
        f.location = calls.front()->from;
        f.in_callees = {method->function};
        f.what = fmt::format("{} is called {} times for {:.0f} instructions each",
                             function_label(p, e.place(entry)), count_text(count), length);
        for (std::size_t i = 0; i < std::min(calls.size(), sites_listed); ++i)
            f.evidence.push_back(fmt::format("{} from {}",
                                             counted("call", calls[i]->statistics.count),
                                             full_label(p, p.at(calls[i]->from))));
        if (calls.size() > sites_listed)
            f.evidence.push_back("and from " + counted("more place", calls.size() - sites_listed));
        if (const auto paths = e.paths_through_entry(entry); paths.hottest)
            f.evidence.push_back(fmt::format(
                "{}{} of all executions of paths go through such a call",
                p.find<PathSection>()->dropped ? "at least " : "", share_text(paths.share)));
        f.touches = e.share_of_instructions(static_cast<double>(count) *
                                            (std::max(0.0, length - 1) + call_and_return));
        f.bounds = scaled(e.edge_share(*calls.front()), f.touches);
        found.push_back(std::move(f));
    }
    return found;
}

}  // namespace shadowprof::report
