// Integers that are divided by powers of two which the compiler does not know, one or several:
// sizes of hash tables, widths of fields. A shift and a mask do the same.
//
// Where it is surely one and the same, constant_divisors.cpp says so.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "report/opportunities/divisors.h"
#include "report/opportunities/finders.h"
#include "report/opportunities/values_where.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

std::string values_text(const ValuesWhere& powers) {
    constexpr std::size_t told = 5;
    std::string text;
    for (std::size_t i = 0; i < std::min(told, powers.values.size()); ++i)
        text += fmt::format("{}{} in {}", i ? ", " : "", powers.values[i].value,
                            share_text(powers.values[i].share));
    if (powers.values.size() > told)
        text += fmt::format(", and {} more", powers.values.size() - told);
    return text;
}

bool is_constant(const Evidence& e, const Divisor& divisor) {
    const auto usual = usual_divisor(e, divisor);
    return usual && usual->ratio.low >= tuning::least_divisor_share;
}

}  // namespace

std::vector<Finding> find_power_divisors(const Evidence& e, Symbols&) {
    const Condition is_power = [](std::uint64_t value) { return std::has_single_bit(value); };
    std::vector<Finding> found;
    for (Point at = 0; at < e.points(); ++at) {
        if (e.executions(at) < tuning::least_executions || !is_integer_division(e.text(at)))
            continue;
        const auto divisor = divisor_of(e, at);
        if (!divisor) continue;
        const auto powers = divisor->is_in_memory()
                                ? values_where(divisor->loaded, is_power)
                                : values_where(e, divisor->writers, divisor->family, is_power);
        if (powers.ratio.share < tuning::least_divisor_share ||
            powers.ratio.low < tuning::surely_a_power || is_constant(e, *divisor))
            continue;
        Finding f;
        f.location = e.location(at);
        f.what = fmt::format("divides by powers of two in {} of {}", ratio_text(powers.ratio),
                             counted("execution", e.executions(at)));
        f.evidence.push_back(fmt::format("{}: by {}", e.place(at).text, values_text(powers)));
        f.touches = e.share_of_instructions(real(e.executions(at)) * powers.ratio.share *
                                            tuning::instructions_in_a_division);
        found.push_back(std::move(f));
    }
    return found;
}

}  // namespace shadowprof::report
