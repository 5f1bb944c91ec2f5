// A profile type's own table, as text.
#pragma once

#include <string>

#include "model/shown_table.h"
#include "report/text/text_table.h"

namespace shadowprof::report {

// At most `most_rows` of it, no wider than `width`.
std::string text_of(const model::ShownTable& table, std::size_t most_rows, std::size_t width,
                    const Paint& paint);

}  // namespace shadowprof::report
