// Divisions whose divisor is always the same, though the compiler could not know it. Dividing by a
// constant is a multiplication and a shift; by a variable it is one of the slowest instructions.
#include <fmt/format.h>

#include "profile/value/value_words.h"
#include "report/opportunities/divisors.h"
#include "report/opportunities/finders.h"
#include "report/text/format.h"

namespace shadowprof::report {

std::vector<Finding> find_constant_divisors(const Evidence& e, Symbols&) {
    constexpr std::size_t writers_listed = 3;
    std::vector<Finding> found;
    for (Point at = 0; at < e.points(); ++at) {
        if (e.executions(at) < tuning::least_executions) continue;
        const auto divisor = divisor_of(e, at);
        const auto usual = divisor ? usual_divisor(e, *divisor) : std::nullopt;
        if (!usual || usual->ratio.low < tuning::least_divisor_share || usual->value == 0) continue;
        const auto& p = e.profile();
        Finding f;
        f.location = e.location(at);
        f.what = fmt::format("divides by {} in {} of {}", value_text(usual->value, *usual->entry),
                             ratio_text(usual->ratio), counted("execution", e.executions(at)));
        f.evidence.push_back(p.at(f.location).text);
        for (const auto& [writer, flow] : divisor->writers.found) {
            f.covers.push_back(e.location(writer));
            if (f.covers.size() <= writers_listed)
                f.evidence.push_back(fmt::format(
                    "the divisor was written by {} at {}, {} times", e.place(writer).text,
                    full_label(p, e.place(writer)), count_text(e.executions(writer))));
        }
        f.touches =
            e.share_of_instructions(static_cast<double>(e.executions(at)) * usual->ratio.share *
                                    tuning::instructions_in_a_division);
        found.push_back(std::move(f));
    }
    return found;
}

}  // namespace shadowprof::report
