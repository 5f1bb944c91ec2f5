#include "report/views/shares.h"

namespace shadowprof::report {

bool saw_everything(const Profile& p) {
    bool is_all = false;
    const auto look = [&](const auto* list) { is_all |= list && list->totals.exhaustive; };
    look(p.find<PathSection>());
    look(p.find<EdgeSection>());
    look(p.find<MethodSection>());
    look(p.find<CallSection>());
    if (const auto* values = p.find<ValueSection>()) is_all |= values->all_executions().exhaustive;
    return is_all;
}

Share share_of(const Statistics& entry, const Totals& totals) {
    return model::estimate_share(entry, totals);
}

Share share_of(const ValueShare& value, const ValueEntry& entry) {
    return model::estimate_value_share(value.statistics, entry.executions,
                                       entry.probability_inverse);
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
    return path.part_of(*all);
}

}  // namespace shadowprof::report
