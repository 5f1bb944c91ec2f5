// Chapters in a terminal.
#pragma once

#include <cstddef>
#include <string>

#include "model/shown_chapter.h"
#include "report/model/profile.h"
#include "report/text/text_table.h"

namespace shadowprof::report {

// The title in bold, and what is in brackets after it.
std::string heading_text(const std::string& title, const std::string& explanation,
                         std::size_t width, const Paint& paint);

std::string chapter_text(const Profile& profile, const ShownChapter& chapter, std::size_t width,
                         const Paint& paint);

}  // namespace shadowprof::report
