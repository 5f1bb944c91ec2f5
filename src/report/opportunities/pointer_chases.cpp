// Loads that wait twice: first for their address, which an earlier load yields, and then for their
// data. No processor can begin such a load earlier; only other data structures help.
#include <fmt/format.h>

#include "report/opportunities/finders.h"
#include "report/opportunities/waiting_loads.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {
std::string origin_text(const Evidence& e, const WaitingLoads& group) {
    const auto& from = group.trail.from;
    if (!from) return "from where other loads pointed";
    if (*from == group.loads.front()->location) return "from where it loaded the time before";
    return fmt::format("from where {} loaded", full_label(e.profile(), e.profile().at(*from)));
}
}  // namespace

std::vector<Finding> find_pointer_chases(const Evidence& e, Symbols&) {
    std::vector<Finding> found;
    for (const auto& group : waiting_loads(e)) {
        if (group.trail.kind != AddressTrail::Kind::pointer) continue;
        found.push_back(waiting_finding(e, group, origin_text(e, group)));
    }
    return found;
}

}  // namespace shadowprof::report
