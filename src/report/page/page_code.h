// The code of the hottest functions, for the page: instructions and source lines with their heat.
#pragma once

#include "report/page/page_data.h"
#include "report/page/page_index.h"

namespace shadowprof::report {

// The key "code": an array of functions.
void write_code(JsonOutput& out, const Profile& profile, Symbols& symbols, PageIndex& index,
                const PageLimits& limits);

}  // namespace shadowprof::report
