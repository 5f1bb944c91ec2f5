// What two engines' Traces of the same execution have not in common, for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recorded_trace.h"
#include "trace/location.h"

namespace shadowprof::equivalence {

// Values are compared where both have them.
std::optional<std::string> first_difference(const std::vector<ExecutedInstruction>& interpreted,
                                            const std::vector<ExecutedInstruction>& other,
                                            std::string_view other_name,
                                            const trace::ModuleTable& modules);

// The instructions before, the oldest first.
std::string history(const std::vector<ExecutedInstruction>& executed, std::size_t end);

// Differences of state after what was executed; nothing if there are none.
std::optional<std::string> joined(const std::string& what, const std::vector<std::string>& lines,
                                  const std::vector<ExecutedInstruction>& executed);

}  // namespace shadowprof::equivalence
