// Accesses to memory that the processor waits for although the data are near: loads of what was
// just written in another size, and accesses that span two lines or pages.
#include <fmt/format.h>

#include "profile/hazard/hazard_words.h"
#include "report/opportunities/finders.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

using profile::Hazard;
using profile::HazardSection;

// Waiting counts alike in all findings.
static_assert(machine::instructions_in_a_nanosecond == tuning::instructions_in_a_nanosecond);

template <class Is, class What>
std::vector<Finding> find_hazards(const Evidence& e, Is is_wanted, What what) {
    std::vector<Finding> found;
    const auto* list = e.profile().find<HazardSection>();
    if (!list) return found;
    for (const auto& entry : list->entries) {
        if (!is_wanted(entry.kind) || entry.statistics.count < tuning::least_executions) continue;
        Finding f;
        f.location = entry.location;
        f.what = what(entry);
        f.evidence.push_back(fmt::format("{}: {}, {} each on this machine",
                                         e.profile().at(entry.location).text,
                                         counted("time", entry.statistics.count),
                                         nanoseconds_text(HazardSection::Entry::mean_ns(entry))));
        f.touches = share_of_time(static_cast<double>(entry.cost_ps), *list);
        f.bounds = scaled(share_of(entry.statistics, list->totals), f.touches);
        found.push_back(std::move(f));
    }
    return found;
}

}  // namespace

std::vector<Finding> find_failed_forwarding(const Evidence& e, Symbols&) {
    const auto& p = e.profile();
    return find_hazards(
        e, [](Hazard kind) { return kind == Hazard::failed_forwarding; },
        [&](const HazardSection::Entry& entry) {
            const auto& store = p.at(*entry.store);
            return fmt::format(
                "loads bytes of which {} at {} just wrote a part ({:.0f} instructions between)",
                store.text, full_label(p, store), entry.each(entry.distance));
        });
}

std::vector<Finding> find_split_accesses(const Evidence& e, Symbols&) {
    return find_hazards(
        e, [](Hazard kind) { return !profile::is_pair(kind); },
        [](const HazardSection::Entry& entry) {
            return std::string(profile::hazard_words(entry.kind));
        });
}

}  // namespace shadowprof::report
