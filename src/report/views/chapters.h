// What profile types say of their sections (model/shown_chapter.h), in the order of reports, and
// the words for it that the text and the page have in common.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/shown_chapter.h"
#include "report/model/profile.h"

namespace shadowprof::report {

// With at most so many rows in each table.
std::vector<ShownChapter> chapters_of(const Profile& profile, std::size_t most_rows);

// A cell as a line of printable text; of a path or a stack nothing.
std::string cell_text(const Profile& profile, const ShownColumn& column, const ShownCell& cell);

}  // namespace shadowprof::report
