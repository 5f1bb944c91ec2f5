// Variables of different threads in one cache line: each write takes the line from the other's
// processor.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "profile/sharing/sharing_words.h"
#include "report/opportunities/finders.h"
#include "report/text/format.h"
#include "report/views/users_place.h"

namespace shadowprof::report {

namespace {

using profile::Sharing, profile::SharingSection;
using Entry = SharingSection::Entry;

// What one change of the program concerns: two functions, whichever of their accesses, and what
// they touch.
using Side = std::tuple<ModuleIndex, std::uint64_t, std::uint64_t, std::optional<LocationIndex>>;
using Pair = std::pair<Side, Side>;

Side side_of(const Profile& p, LocationIndex access, const std::optional<LocationIndex>& data) {
    const auto& l = p.at(access);
    return {l.module, l.content, l.function_offset.value_or(l.offset), data};
}

Pair pair_of(const Profile& p, const Entry& e) {
    const auto [one, other] =
        std::minmax({side_of(p, e.location, e.data), side_of(p, e.other, e.other_data)});
    return {one, other};
}

Finding finding_of(const Profile& p, const SharingSection& list,
                   const std::vector<const Entry*>& accesses) {
    constexpr std::size_t told = 4;
    const auto& most = *accesses.front();
    Finding f;
    f.location = most.location;
    f.where = users_label(p, p.at(most.location));
    f.what = fmt::format("{} (at {} of its line) and {} (at {}) are used by different threads",
                         profile::shared_data_text(p, most), most.offset,
                         profile::shared_data_text(p, most, true), most.other_offset);
    Share sum;
    for (std::size_t n = 0; n < accesses.size(); ++n) {
        const auto& e = *accesses[n];
        const auto share = share_of(e.statistics, list.totals);
        sum = {sum.share + share.share, sum.low + share.low, std::min(1.0, sum.high + share.high)};
        if (n < told)
            f.evidence.push_back(fmt::format(
                "{} times at most, in {}, {} may have waited for the line from where {} had it",
                count_text(e.statistics.count), counted("window", e.windows),
                users_label(p, p.at(e.location)), users_label(p, p.at(e.other))));
    }
    if (accesses.size() > told)
        f.evidence.push_back(fmt::format("and {}", counted("more access", accesses.size() - told)));
    f.bounds = sum;
    f.touches = sum.share;
    return f;
}

}  // namespace

std::vector<Finding> find_false_sharing(const Evidence& e, Symbols&) {
    const auto& p = e.profile();
    std::vector<Finding> found;
    const auto* list = p.find<SharingSection>();
    if (!list) return found;
    std::map<Pair, std::vector<const Entry*>> pairs;  // of each the accesses that wait most first
    for (const auto& entry : list->entries)
        if (entry.kind == Sharing::false_ && entry.statistics.count >= tuning::least_executions)
            pairs[pair_of(p, entry)].push_back(&entry);
    for (const auto& [pair, accesses] : pairs) found.push_back(finding_of(p, *list, accesses));
    return found;
}

}  // namespace shadowprof::report
