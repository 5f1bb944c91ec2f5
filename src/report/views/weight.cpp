#include "report/views/weight.h"

namespace shadowprof::report {

bool has_time(const Profile& p) {
    const auto* const time = p.find<TimeSection>();
    return time && time->totals.total > 0;
}

Weight weight_for(const Profile& p, std::optional<Weight> asked) {
    return asked.value_or(has_time(p) ? Weight::time : Weight::instructions);
}

}  // namespace shadowprof::report
