// Divisions whose divisor is always the same, though the compiler could not know it. Dividing by a
// constant is a multiplication and a shift; by a variable it is one of the slowest instructions.
//
// The division reads the divisor and does not write it. So its values are taken from the
// instructions that wrote it last, even if they are in a caller, or, if loaded values were
// captured, from the division itself.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "profile/value/value_words.h"
#include "report/opportunities/finders.h"
#include "report/opportunities/last_writers.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

constexpr std::array<std::string_view, 6> divisions{"div",   "idiv",   "divss",
                                                    "divsd", "vdivss", "vdivsd"};

struct Divisor {
    DominantValue value;
    std::vector<Point> writers;
};

std::optional<Divisor> loaded_divisor(const Evidence& e, Point at) {
    Evidence::Written loaded;
    if (e.profile().find<ValueSection>())
        for (const auto& entry : e.profile().find<ValueSection>()->entries)
            if (entry.kind == ValueKind::loaded && e.point(entry.location) == at)
                loaded.entries.push_back(&entry);
    if (auto value = dominant_value(loaded)) return Divisor{*value, {}};
    return {};
}

std::optional<Divisor> divisor_of(const Evidence& e, Point at) {
    const auto text = e.text(at);
    if (text.operands.empty() ||
        std::find(divisions.begin(), divisions.end(), text.mnemonic) == divisions.end())
        return {};
    const auto operand = text.operands.back();
    if (is_memory(operand)) return loaded_divisor(e, at);
    const auto family = register_family(operand);
    if (!family) return {};
    // Writers before this instruction, which may itself write the register that it reads.
    const auto writers = last_writers(e, at, *family);
    const auto value = dominant_value(e, writers, *family);
    if (!value) return {};
    Divisor d{*value, {}};
    for (const auto& w : writers.found) d.writers.push_back(w.at);
    return d;
}

}  // namespace

std::vector<Finding> find_constant_divisors(const Evidence& e, Symbols&) {
    constexpr std::size_t writers_listed = 3;
    std::vector<Finding> found;
    for (Point at = 0; at < e.points(); ++at) {
        if (e.executions(at) < thresholds::least_executions) continue;
        const auto divisor = divisor_of(e, at);
        if (!divisor || divisor->value.ratio.low < thresholds::least_divisor_share ||
            divisor->value.value == 0)
            continue;
        const auto& p = e.profile();
        Finding f;
        f.location = e.location(at);
        f.what = fmt::format(
            "divides by {} in {} of {}", value_text(divisor->value.value, *divisor->value.entry),
            ratio_text(divisor->value.ratio), counted("execution", e.executions(at)));
        f.evidence.push_back(p.at(f.location).text);
        for (const auto writer : divisor->writers) {
            f.covers.push_back(e.location(writer));
            if (f.covers.size() <= writers_listed)
                f.evidence.push_back(fmt::format(
                    "the divisor was written by {} at {}, {} times", e.place(writer).text,
                    full_label(p, e.place(writer)), count_text(e.executions(writer))));
        }
        f.touches = e.share_of_instructions(static_cast<double>(e.executions(at)) *
                                            divisor->value.ratio.share *
                                            thresholds::instructions_in_a_division);
        found.push_back(std::move(f));
    }
    return found;
}

}  // namespace shadowprof::report
