// Formats the numbers of a diff, in the same way in every output.
#pragma once

#include <string>
#include <string_view>

#include "report/diff/diff.h"
#include "report/diff/gate.h"

namespace shadowprof::report {

std::string amount_text(double amount, Unit unit);   // "12.3M", "4.1 %", "85 ns"
std::string difference_text(const Change& c);        // "+1.02 %", "new", "gone"
std::string noise_text(const Change& c, Unit unit);  // "±0.06 %"; empty if there is none
// "12.3M to 12.4M instructions: +1.02 % (noise ±0.06 %)"
std::string whole_text(const Change& c, Unit unit, std::string_view of);
std::string verdict_text(const Verdict& verdict);
std::string bases_text(const Diff& diff);  // "base.json", "5 baselines"

// The changes of a list that a reader should see: the real ones, the greatest first.
std::vector<const Change*> real_changes(const DiffList& list, std::size_t most);
std::size_t count_real(const DiffList& list);

}  // namespace shadowprof::report
