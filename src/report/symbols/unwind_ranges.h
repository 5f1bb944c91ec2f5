// The bounds of functions, without names, from the unwind tables. Even stripped files have them,
// because exceptions need them.
#pragma once

#include <vector>

#include "report/symbols/symbol_file.h"

namespace shadowprof::report {

std::vector<Function> unwind_ranges(const ElfImage& image);

}  // namespace shadowprof::report
