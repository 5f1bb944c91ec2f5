// What reports say of lines that threads share.
#pragma once

#include <string>

#include "model/shown_chapter.h"
#include "profile/sharing/sharing_section.h"

namespace shadowprof::profile {

// "counters+8", "on a stack, at 8 of its line": what the access touches, or the other one.
std::string shared_data_text(const model::Profile& profile, const SharingSection::Entry& entry,
                             bool of_other = false);

model::ShownChapter sharing_chapter(const SharingSection& list, const model::ChapterInputs& inputs);

}  // namespace shadowprof::profile
