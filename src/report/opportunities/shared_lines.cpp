// Variables of different threads in one cache line: each write takes the line from the other's
// processor.
#include <fmt/format.h>

#include <set>
#include <utility>

#include "profile/sharing/sharing_words.h"
#include "report/opportunities/finders.h"
#include "report/text/format.h"

namespace shadowprof::report {

std::vector<Finding> find_false_sharing(const Evidence& e, Symbols&) {
    using profile::Sharing, profile::SharingSection;
    const auto& p = e.profile();
    std::vector<Finding> found;
    const auto* list = p.find<SharingSection>();
    if (!list) return found;
    std::set<std::pair<LocationIndex, LocationIndex>> told;  // each pair once
    for (const auto& entry : list->entries) {
        if (entry.kind != Sharing::false_ || entry.statistics.count < thresholds::least_executions)
            continue;
        if (!told.insert(std::minmax(entry.location, entry.other)).second) continue;
        Finding f;
        f.location = entry.location;
        f.what = fmt::format("{} (at {} of its line) and {} (at {}) are used by different threads",
                             profile::shared_data_text(p, entry), entry.offset,
                             profile::shared_data_text(p, entry, true), entry.other_offset);
        f.evidence.push_back(
            fmt::format("{} times at most, in {}, the line may have come from where {} had it",
                        count_text(entry.statistics.count), counted("window", entry.windows),
                        full_label(p, p.at(entry.other))));
        f.bounds = share_of(entry.statistics, list->totals);
        f.touches = f.bounds->share;
        found.push_back(std::move(f));
    }
    return found;
}

}  // namespace shadowprof::report
