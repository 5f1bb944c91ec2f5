// Loads that wait for data although the address was known long before: it is one step further each
// time, or follows from an index in a table that is read in order. The hardware prefetches steps by
// itself, but not across the end of a page, and it never follows an index.
#include <fmt/format.h>

#include <cstdint>

#include "report/opportunities/finders.h"
#include "report/opportunities/waiting_loads.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {
std::uint64_t distance(std::int64_t step) {
    const auto bytes = static_cast<std::uint64_t>(step);
    return step < 0 ? 0 - bytes : bytes;
}
}  // namespace

std::vector<Finding> find_prefetchable_loads(const Evidence& e, Symbols&) {
    std::vector<Finding> found;
    for (const auto& group : waiting_loads(e)) {
        const auto& first = *group.loads.front();
        switch (group.trail.kind) {
            case AddressTrail::Kind::step:
                found.push_back(waiting_finding(
                    e, group,
                    first.step == 0
                        ? std::string("each the same distance from the one before")
                        : fmt::format("each {} bytes {} the one before", distance(first.step),
                                      first.step > 0 ? "after" : "ahead of")));
                break;
            case AddressTrail::Kind::index:
                found.push_back(waiting_finding(
                    e, group,
                    fmt::format("by what {} loads, which goes by steps",
                                full_label(e.profile(), e.profile().at(*group.trail.from)))));
                break;
            case AddressTrail::Kind::pointer:
            case AddressTrail::Kind::nowhere:
                break;
        }
    }
    return found;
}

}  // namespace shadowprof::report
