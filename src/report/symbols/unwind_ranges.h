// Where functions begin and end by the unwind tables: known even for stripped files, because
// exceptions need it. No names.
#pragma once

#include <vector>

#include "report/symbols/symbol_file.h"

namespace shadowprof::report {

std::vector<Function> unwind_ranges(const ElfImage& image);

}  // namespace shadowprof::report
