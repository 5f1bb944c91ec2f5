#include "report/views/shares.h"

#include <algorithm>

namespace shadowprof::report {

namespace {

bool saw_everything(const Profile& p) {
    const auto* paths = p.find<PathSection>();
    const auto* edges = p.find<EdgeSection>();
    return (paths && paths->totals.exhaustive) || (edges && edges->totals.exhaustive);
}

}  // namespace

Share share_of(const Statistics& entry, const Totals& totals) {
    return model::estimate_share(entry, totals);
}

Share share_of(const ValueShare& value, const ValueEntry& entry) {
    return model::estimate_value_share(value.statistics, entry.executions,
                                       entry.probability_inverse);
}

double fraction(double part, double whole) {
    return whole > 0 ? std::min(1.0, part / whole) : 0;
}

std::optional<std::uint64_t> weighted_instructions(const Profile& p) {
    if (p.coverage.weighted_instructions) return p.coverage.weighted_instructions;
    if (const auto* methods = p.find<MethodSection>()) return methods->instructions.total;
    if (saw_everything(p)) return p.coverage.instructions;
    return {};
}

std::optional<double> work_of(const PathEntry& path, const Profile& p) {
    const auto all = weighted_instructions(p);
    if (!all) return {};
    return fraction(
        static_cast<double>(path.instructions()) * static_cast<double>(path.statistics.count),
        static_cast<double>(*all));
}

}  // namespace shadowprof::report
